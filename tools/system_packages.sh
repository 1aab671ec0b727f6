#!/bin/sh
# Makes sure of the libraries and programs that pip cannot install.
#
#   system_packages.sh PYTHON [test]
#
# Looks for each by what it provides, not by package name. What is missing it installs through apt
# if it may (root, or sudo without a password); otherwise it prints the command and fails.
set -eu
python=$1
purpose=${2:-run}

case $(ldconfig -p 2>/dev/null || /sbin/ldconfig -p) in
  "") echo "system_packages.sh: ldconfig lists no libraries" >&2; exit 1 ;;
esac
has_library() { { ldconfig -p 2>/dev/null || /sbin/ldconfig -p; } | grep -q "[[:space:]]$1 "; }
has_program() { command -v "$1" >/dev/null 2>&1; }
has_file() { for file in $1; do [ -e "$file" ] && return 0; done; return 1; }
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')

missing() {
  "$python" -c 'import ensurepip, venv' 2>/dev/null || echo "python$version-venv"
  # The message package is compiled against Python's headers.
  "$python" -c 'import os, sysconfig; os.stat(os.path.join(sysconfig.get_path("include"), "Python.h"))' 2>/dev/null \
    || echo "python$version-dev"
  has_program cc && has_program c++ || echo build-essential
  # Open3D
  has_library libusb-1.0.so.0 || echo libusb-1.0-0
  has_library libidn2.so.0 || echo libidn2-0
  has_library libX11.so.6 || echo libx11-6
  has_library libGL.so.1 || echo libgl1
  # MuJoCo, which renders depth off screen through Mesa's EGL
  has_library libEGL.so.1 || echo libegl1
  has_library libGLESv2.so.2 || echo libgles2
  has_file "/usr/share/glvnd/egl_vendor.d/*.json /etc/glvnd/egl_vendor.d/*.json" || echo libegl-mesa0
  has_file "/usr/lib/*/dri/*_dri.so /usr/lib/dri/*_dri.so /usr/lib64/dri/*_dri.so /usr/lib/*/libgallium*.so" \
    || echo libgl1-mesa-dri
  if [ "$purpose" = test ]; then
    # A headless browser takes the screenshots of the viewer's test.
    has_program chromium || has_program chromium-browser || has_program google-chrome || echo chromium
    # The C++ geometry of morphit_moveit is compiled and tested without MoveIt.
    has_file /usr/include/eigen3/Eigen/Core || echo libeigen3-dev
  fi
}

wanted=$(missing | tr '\n' ' ')
[ -n "$wanted" ] || exit 0
install="apt-get install --yes --no-install-recommends $wanted"
if ! has_program apt-get; then
  echo "Missing system packages (Debian's names): $wanted" >&2
  echo "Install them with this system's package manager, then run make again." >&2
  exit 1
elif [ "$(id -u)" = 0 ]; then
  sudo=
elif has_program sudo && sudo -n true 2>/dev/null; then
  sudo="sudo -n"
else
  echo "Missing system packages: $wanted" >&2
  echo "Run this, then make again:" >&2
  echo "    sudo apt-get update && sudo $install" >&2
  exit 1
fi
echo "Installing system packages: $wanted"
DEBIAN_FRONTEND=noninteractive
export DEBIAN_FRONTEND
$sudo apt-get update --quiet=2
# shellcheck disable=SC2086  # one word a package
$sudo ${sudo:+env DEBIAN_FRONTEND=noninteractive} $install --quiet=2 </dev/null
still=$(missing | tr '\n' ' ')
[ -z "$still" ] || { echo "Still missing after the installation: $still" >&2; exit 1; }
