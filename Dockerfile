# morphit_ros on ROS 2 Jazzy's own image: packages of Ubuntu by rosdep, the rest by pip beside them.
#
#   docker build --tag morphit_ros .
#   docker run --rm --network host morphit_ros ros2 launch morphit_ros grasp.launch.py sim:=true robot:=panda
#
# It was checked by hadolint and by the project's tests, and never built by its authors: say what happens if you do.
# For builds that stay the same name the image by its digest: --build-arg ROS_IMAGE=ros:jazzy@sha256:...
ARG ROS_IMAGE=ros:jazzy
# hadolint ignore=DL3006
FROM ${ROS_IMAGE}

SHELL ["/bin/bash", "-o", "errexit", "-o", "pipefail", "-c"]
ENV MORPHIT=/opt/morphit
WORKDIR ${MORPHIT}

# What changes least first. Libraries: what Open3D, MuJoCo and Mesa's rendering need (tools/system_packages.sh).
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install --yes --no-install-recommends \
      build-essential libegl-mesa0 libegl1 libgl1 libgl1-mesa-dri libgles2 libidn2-0 libusb-1.0-0 libx11-6 \
      python3-dev python3-venv \
 && rm -rf /var/lib/apt/lists/*

COPY package.xml src/morphit_ros/
COPY morphit_interfaces/package.xml src/morphit_ros/morphit_interfaces/
RUN apt-get update \
 && rosdep update --rosdistro jazzy \
 && rosdep install --rosdistro jazzy --ignore-src --default-yes --dependency-types=build --dependency-types=buildtool \
      --dependency-types=build_export --dependency-types=exec \
      --from-paths src/morphit_ros src/morphit_ros/morphit_interfaces \
 && rm -rf /var/lib/apt/lists/* /root/.ros

COPY requirements-ros.txt constraints.txt ./
RUN python3 -m venv --system-site-packages venv \
 && venv/bin/pip install --no-cache-dir --requirement requirements-ros.txt --constraint constraints.txt

COPY . src/morphit_ros
RUN . /opt/ros/jazzy/setup.sh \
 && colcon build --merge-install --base-paths src/morphit_ros src/morphit_ros/morphit_interfaces \
      --cmake-args -DBUILD_TESTING=OFF \
 && rm -rf build log

# Nodes need no rights: real cameras and arms are reached by the network, or by devices that `docker run` hands in.
RUN useradd --create-home --uid 1100 morphit
USER 1100
WORKDIR /home/morphit
ENV VIRTUAL_ENV=${MORPHIT}/venv
ENV PATH=${VIRTUAL_ENV}/bin:${PATH} \
    MORPHIT_PACKAGE_PATH=${VIRTUAL_ENV}/lib/python3.12/site-packages/cmeel.prefix/share
# In the user's own cache; half a minute to some minutes, and then no node waits for a compiler.
RUN . "${MORPHIT}/install/setup.sh" && morphit_path="$(ros2 pkg prefix morphit_ros)/lib/morphit_ros" && "${morphit_path}/morphit" compile

ENTRYPOINT ["/bin/bash", "-c", ". /opt/morphit/install/setup.sh && exec \"$@\"", "morphit"]
CMD ["ros2", "launch", "morphit_ros", "grasp.launch.py", "--show-args"]
