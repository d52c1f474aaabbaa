{{/* Variables that say where Redis is; passwords come from files. */}}
{{- define "sluice.redis.env" -}}
{{- $redis := .Values.redis -}}
{{- if and $redis.bundled.enabled (or $redis.url $redis.sentinel.addresses) -}}
{{- fail "redis: bundled.enabled is for trials without a Redis of their own; remove it, or url and sentinel" -}}
{{- end -}}
{{- if and $redis.url $redis.sentinel.addresses }}{{ fail "redis: give url or sentinel, not both" }}{{ end -}}
{{- if and (or $redis.url $redis.sentinel.addresses) .Values.networkPolicy.enabled (not .Values.networkPolicy.redis.to) -}}
{{- fail "networkPolicy.redis.to: nothing may reach Redis, so say where it is: [{ipBlock: {cidr: ITS SUBNET}}] for a managed one, a podSelector or namespaceSelector for one in the cluster; and its ports in networkPolicy.redis.ports" -}}
{{- end -}}
{{- if $redis.bundled.enabled }}
- {name: SLUICE_CACHE_REDIS_URL, value: "redis://{{ include "sluice.fullname" . }}-redis.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}:6379/0"}
- {name: SLUICE_CACHE_REDIS_PASSWORD_FILE, value: /etc/sluice/redis/password}
{{- end }}
{{- if $redis.url }}
- {name: SLUICE_CACHE_REDIS_URL, value: {{ $redis.url | quote }}}
{{- end }}
{{- if $redis.cluster }}
- {name: SLUICE_CACHE_REDIS_CLUSTER, value: "true"}
{{- end }}
{{- with $redis.sentinel.addresses }}
- {name: SLUICE_CACHE_REDIS_SENTINEL_ADDRESSES, value: {{ join "," . | quote }}}
- {name: SLUICE_CACHE_REDIS_SENTINEL_SERVICE, value: {{ required "redis.sentinel.service: the primary's name is missing" $redis.sentinel.service | quote }}}
{{- with $redis.sentinel.username }}
- {name: SLUICE_CACHE_REDIS_SENTINEL_USERNAME, value: {{ . | quote }}}
{{- end }}
{{- if $redis.sentinel.password.secretName }}
- {name: SLUICE_CACHE_REDIS_SENTINEL_PASSWORD_FILE, value: /etc/sluice/redis/sentinel-password}
{{- end }}
{{- end }}
{{- with $redis.username }}
- {name: SLUICE_CACHE_REDIS_USERNAME, value: {{ . | quote }}}
{{- end }}
{{- if $redis.password.secretName }}
- {name: SLUICE_CACHE_REDIS_PASSWORD_FILE, value: /etc/sluice/redis/password}
{{- end }}
{{- if $redis.tls.secretName }}
{{- range $part := list "ca" "certificate" "key" }}
{{- if get $redis.tls $part }}
- {name: SLUICE_CACHE_REDIS_TLS_{{ upper $part }}, value: /etc/sluice/redis/tls/{{ get $redis.tls $part }}}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Sources of the volume with Redis' passwords and certificates; empty where there are none. */}}
{{- define "sluice.redis.files" -}}
{{- $redis := .Values.redis -}}
{{- $sources := list -}}
{{- if $redis.bundled.enabled -}}
{{- $sources = append $sources (dict "secret" (dict "name" (printf "%s-redis" (include "sluice.fullname" .)) "items" (list (dict "key" "password" "path" "password")))) -}}
{{- end -}}
{{- with $redis.password.secretName -}}
{{- $sources = append $sources (dict "secret" (dict "name" . "items" (list (dict "key" $redis.password.key "path" "password")))) -}}
{{- end -}}
{{- with $redis.sentinel.password.secretName -}}
{{- $sources = append $sources (dict "secret" (dict "name" . "items" (list (dict "key" $redis.sentinel.password.key "path" "sentinel-password")))) -}}
{{- end -}}
{{- if $redis.tls.secretName -}}
{{- $items := list -}}
{{- range $part := list "ca" "certificate" "key" -}}
{{- with get $redis.tls $part }}{{ $items = append $items (dict "key" . "path" (printf "tls/%s" .)) }}{{ end -}}
{{- end -}}
{{- $sources = append $sources (dict "secret" (dict "name" $redis.tls.secretName "items" $items)) -}}
{{- end -}}
{{- if $sources }}{{ toYaml $sources }}{{ end -}}
{{- end -}}
