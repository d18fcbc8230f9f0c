#!/usr/bin/env bash
# Installs the font that documents are set in, WenQuanYi Micro Hei, which has Chinese characters,
# and prints where it is. Safe to run again: a font that is there is left as it is.
#
# Root installs Debian's package fonts-wqy-microhei; for others it is only unpacked, into their
# cache. The file is a collection (.ttc), of which Suanpan takes the
# first face itself.
#
#   SUANPAN_FONT    use this file instead; nothing is installed
#   XDG_CACHE_HOME  moves the cache
set -euo pipefail

package=fonts-wqy-microhei
installed=/usr/share/fonts/truetype/wqy/wqy-microhei.ttc

die() {
  echo "font.sh: $*" >&2
  echo "font.sh: name a TrueType font with Chinese characters in SUANPAN_FONT instead." >&2
  exit 1
}

# unpack fetches the package without installing it and puts the font into the cache.
unpack() {
  local cached=$1 work
  mkdir -p "$(dirname "$cached")"
  work=$(mktemp -d "$(dirname "$cached")/fetch.XXXXXX")
  # shellcheck disable=SC2064 # the folder's name is known now
  trap "rm -rf '$work'" EXIT
  (cd "$work" && apt-get download -q "$package" >&2) || die "cannot fetch $package"
  dpkg-deb -x "$work"/*.deb "$work/files" || die "cannot unpack $package"
  # Renamed when whole, so that an unfinished copy is never seen under the final name.
  mv -f "$work/files$installed" "$cached" || die "$package has no $installed"
}

main() {
  if [ -n "${SUANPAN_FONT:-}" ]; then
    [ -f "$SUANPAN_FONT" ] || die "SUANPAN_FONT names no file: $SUANPAN_FONT"
    echo "$SUANPAN_FONT"
    return
  fi
  local cached=${XDG_CACHE_HOME:-$HOME/.cache}/suanpan/fonts/wqy-microhei.ttc file
  for file in "$cached" "$installed"; do
    if [ -f "$file" ]; then
      echo "$file"
      return
    fi
  done
  command -v apt-get >/dev/null || die "needs apt-get; other systems call it wqy-microhei-fonts"
  if [ "$(id -u)" -eq 0 ]; then
    apt-get update -q >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$package" >&2 ||
      die "cannot install $package"
    echo "$installed"
    return
  fi
  unpack "$cached"
  echo "$cached"
}

main "$@"
