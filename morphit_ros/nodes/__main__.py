"""``python -m morphit_ros.nodes NAME …``: as the files in scripts/, from a source tree that is not installed."""

import pkgutil
import sys

from morphit_ros import nodes

if __name__ == "__main__":
    names = sorted(module.name for module in pkgutil.iter_modules(nodes.__path__) if not module.name.startswith("_"))
    if sys.argv[1:2] and sys.argv[1] in names:
        nodes.start(sys.argv.pop(1))
    sys.exit(f"usage: python -m morphit_ros.nodes NAME [--ros-args …], NAME one of {', '.join(names)}")
