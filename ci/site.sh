#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The pages of the tree as a site in build/site/html: collected (ci/docs.py site), the C headers by doxygen, built by
# mkdocs with every broken link an error. mkdocs comes from PyPI, pinned, into a virtual environment under build/site:
# where pip reaches no package index, nothing is built.
# shellcheck source=ci/lib.sh
. "$(dirname "$0")/lib.sh"
out=build/site
venv=$out/venv
mkdir -p "$out"
rm -rf "$out/html"
export PIP_DISABLE_PIP_VERSION_CHECK=1 NO_MKDOCS_2_WARNING=1

if ! cmp -s ci/site/requirements.txt "$venv/requirements.txt"; then
  rm -rf "$venv"
  /usr/bin/python3 -m venv "$venv"
  if ! "$venv/bin/pip" download -q --no-deps -d "$out/download" mkdocs==1.6.1 >"$out/pip.log" 2>&1; then
    echo "site: not built, pip reaches no package index"
    exit 0
  fi
  "$venv/bin/pip" install -q -r ci/site/requirements.txt >"$out/pip.log" 2>&1 || {
    tail -n 20 "$out/pip.log" >&2
    exit 1
  }
  cp ci/site/requirements.txt "$venv"
fi
/usr/bin/python3 -B ci/docs.py site "$out"
mkdir -p "$out/pages/c"
SITE_OUT=$out/pages/c doxygen ci/site/Doxyfile >"$out/doxygen.log" 2>&1 || {
  tail -n 20 "$out/doxygen.log" >&2
  exit 1
}
"$venv/bin/mkdocs" build --strict -f "$out/mkdocs.yml" >"$out/mkdocs.log" 2>&1 || {
  cat "$out/mkdocs.log" >&2
  exit 1
}
# The check proves itself: links to a page and to a heading that are not there are refused.
echo "[nowhere](nowhere.md) [heading](HACKING.md#nowhere)" >>"$out/pages/README.md"
if "$venv/bin/mkdocs" build --strict -f "$out/mkdocs.yml" -d spoilt >"$out/spoilt.log" 2>&1 ||
  [ "$(grep -c nowhere "$out/spoilt.log")" -lt 2 ]; then
  echo "site: broken links pass"
  exit 1
fi
echo "site: $(find "$out/html" -name '*.html' | wc -l) pages in $out/html"
