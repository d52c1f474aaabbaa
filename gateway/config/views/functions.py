"""The functions of Spark that a view may call: those whose result follows from their arguments alone."""

from __future__ import annotations

from typing import Final

# What a row says of itself.
_SCALAR: Final = """
    abs acos acosh add_months aggregate array array_append array_compact array_contains array_distinct
    array_except array_intersect array_join array_max array_min array_position array_prepend array_remove
    array_repeat array_size array_sort array_union arrays_overlap arrays_zip ascii asin asinh atan atan2
    atanh base64 bin bit_count bit_length bround btrim cardinality cbrt ceil ceiling char char_length
    character_length chr coalesce concat concat_ws contains conv cos cosh cot crc32 csc date date_add
    date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day
    dayname dayofmonth dayofweek dayofyear degrees e element_at elt encode endswith equal_null exists exp
    expm1 factorial filter find_in_set flatten floor forall format_number from_unixtime get greatest hash
    hex hour hypot if ifnull initcap instr isnan isnotnull isnull last_day lcase least left len length
    levenshtein ln locate log log10 log1p log2 lower lpad ltrim make_date make_dt_interval make_timestamp
    make_ym_interval map map_concat map_contains_key map_entries map_filter map_from_arrays
    map_from_entries map_keys map_values map_zip_with mask md5 minute mod month monthname months_between
    named_struct nanvl negative next_day nullif nullifzero nvl nvl2 octet_length overlay pi pmod positive
    pow power quarter radians regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like
    regexp_replace regexp_substr reduce repeat replace reverse right rint round rpad rtrim sec second
    sequence sha sha1 sha2 shiftleft shiftright sign signum sin sinh size slice sort_array soundex space
    split split_part sqrt startswith str_to_map struct substr substring substring_index tan tanh timestamp
    timestamp_micros timestamp_millis timestamp_seconds to_binary to_char to_date to_number to_timestamp
    to_utc_timestamp from_utc_timestamp transform transform_keys transform_values translate trim trunc
    try_add try_divide try_element_at try_multiply try_subtract try_to_binary try_to_number
    try_to_timestamp typeof ucase unbase64 unhex unix_date unix_micros unix_millis unix_seconds upper
    weekday weekofyear width_bucket xxhash64 year zeroifnull zip_with bigint binary boolean decimal double
    float int smallint string tinyint
"""
SCALAR: Final = frozenset(_SCALAR.split())
# What many rows say together, in whatever order they come.
_AGGREGATE: Final = """
    any_value approx_count_distinct approx_percentile avg bit_and bit_or bit_xor bool_and bool_or
    collect_list collect_set corr count count_if covar_pop covar_samp every first first_value grouping
    grouping_id kurtosis last last_value listagg max max_by mean median min min_by mode percentile
    percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept
    regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev stddev_pop stddev_samp
    string_agg sum try_avg try_sum var_pop var_samp variance array_agg
"""
AGGREGATE: Final = frozenset(_AGGREGATE.split())
WINDOW: Final = frozenset(
    ["cume_dist", "dense_rank", "lag", "lead", "nth_value", "ntile", "percent_rank", "rank", "row_number"]
)
# What the moment of the refresh says. A view that asks is made anew each time.
CLOCK: Final = frozenset(["current_date", "current_timestamp", "now"])
# Ours: a property of the recipient that is shown the view.
RECIPIENT: Final = "current_recipient"

ALLOWED: Final = SCALAR | AGGREGATE | WINDOW | CLOCK | {RECIPIENT}
