# Included into the project when pip builds this package against ROS 2 wheels (see pyproject.toml).
# A colcon build in a ROS installation does not use this file.

find_package(Python3 REQUIRED COMPONENTS Interpreter)

# The build environment of pip holds ament's CMake files below its own prefix, which is known to Python only.
execute_process(
  COMMAND "${Python3_EXECUTABLE}" -c
    "import pathlib, ament_package; print(next(p for p in pathlib.Path(ament_package.__file__).parents if (p / 'share' / 'ament_cmake_core').is_dir()))"
  OUTPUT_VARIABLE morphit_ament_prefix
  OUTPUT_STRIP_TRAILING_WHITESPACE
  COMMAND_ERROR_IS_FATAL ANY
)
list(PREPEND CMAKE_PREFIX_PATH "${morphit_ament_prefix}")
set(ENV{AMENT_PREFIX_PATH} "${morphit_ament_prefix}")

# The message wheels export include directories of the machine they were built on.
function(morphit_remove_foreign_include_directories)
  get_property(names DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" PROPERTY IMPORTED_TARGETS)
  foreach(name IN LISTS names)
    get_target_property(directories ${name} INTERFACE_INCLUDE_DIRECTORIES)
    if(directories)
      list(FILTER directories EXCLUDE REGEX "^/opt/python/")
      set_target_properties(${name} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${directories}")
    endif()
  endforeach()
endfunction()
cmake_language(DEFER CALL morphit_remove_foreign_include_directories)
