#!/bin/sh
# The steps of the image's build that install something. Each is one argument, as the Dockerfile calls it:
#   install.sh packages PREFIX REQUIREMENTS      an environment at PREFIX with pinned packages, and without pip
#   install.sh project PREFIX SOURCE             Sluice itself
#   install.sh sbom PREFIX REQUIREMENTS BASE     PREFIX/sbom.cdx.json; BASE is the image that it will lie on
#   install.sh jars PREFIX                       PREFIX/jars: what Spark needs for Delta and S3
set -eu
step=$1
prefix=$2
# What pip says it has installed, for the bill of materials: an archive's hash is nowhere else.
reports=${REPORTS:-./reports}

pip_into() {
    python=$1
    shift
    python3 -m pip --python "$python" --disable-pip-version-check --no-input install --progress-bar off --no-deps "$@"
}

case $step in
packages)
    mkdir -p "$reports"
    [ -e "$prefix/bin/python" ] || python3 -m venv --without-pip "$prefix"
    # First what builds packages that come as sources (Spark does): a build of its own would fetch another, unpinned.
    setuptools=$(mktemp)
    sed -n '/^setuptools==/,/[^\\]$/p' "$3" >"$setuptools"
    pip_into "$prefix/bin/python" --require-hashes --no-compile --quiet --requirement "$setuptools"
    # The file is whole, so that nothing else is looked for; bytecode is made at the end, for what is left then.
    pip_into "$prefix/bin/python" --require-hashes --no-compile --no-build-isolation --use-pep517 --requirement "$3" \
        --report "$reports/$(basename "$3").json"
    rm "$setuptools"
    ;;
project)
    pip_into "$prefix/bin/python" --no-build-isolation --no-compile "$3"
    ;;
sbom)
    tool=$(mktemp -d)
    python3 -m venv --without-pip "$tool"
    pip_into "$tool/bin/python" --require-hashes --no-compile --quiet --requirement "$3"
    "$tool/bin/python" "$(dirname "$0")/sbom.py" "$prefix" --reports "$reports" --base "$4"
    rm -rf "$tool"
    ;;
jars)
    cache=$(mktemp -d)
    # As the gateway would fetch them; they are of one version of Spark, which pipeline/jars/pom.xml names.
    XDG_CACHE_HOME=$cache "$prefix/bin/python" -m pipeline.jars >/dev/null
    mv "$cache"/sluice/components/spark-jars-* "$prefix/jars"
    chmod -R u=rwX,go=rX "$prefix/jars"
    rm -rf "$cache"
    ;;
*)
    echo "install.sh: there is no step $step" >&2
    exit 2
    ;;
esac
