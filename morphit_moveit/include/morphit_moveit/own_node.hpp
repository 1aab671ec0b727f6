#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <rclcpp/rclcpp.hpp>

namespace morphit_moveit
{
/** A node of a plugin, beside those of the process that loaded it.
 *
 * Its namespace is that of the process, or MORPHIT_NAMESPACE of the environment: MoveItPy takes its own namespace as an
 * argument of Python, which no plugin sees.
 *
 * @throws std::exception what rclcpp says of a name that is none.
 */
inline std::shared_ptr<rclcpp::Node> makeOwnNode(const std::string& name)
{
  // Arguments of a node go before those of the process, whose __node:= would rename this node too.
  std::vector<std::string> arguments{ "--ros-args", "-r", "__node:=" + name };
  const char* const space = std::getenv("MORPHIT_NAMESPACE");
  if (space != nullptr && *space != '\0')
  {
    arguments.emplace_back("-r");
    arguments.push_back(std::string("__ns:=") + (*space == '/' ? "" : "/") + space);
  }
  return std::make_shared<rclcpp::Node>(name, rclcpp::NodeOptions().arguments(arguments));
}
}  // namespace morphit_moveit
