#!/bin/sh
# Prints the first Python of a version that all dependencies have wheels for.
for candidate in "$@"; do
  if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null; then
    command -v "$candidate"
    exit 0
  fi
done
echo "Python 3.11 or 3.12 is needed (Open3D has no wheels for later ones, NumPy none for earlier ones); tried: $*." >&2
echo "Install one (on Debian 12: apt-get install python3 python3-venv), or name one: make PYTHON=/path/to/python3.12" >&2
exit 1
