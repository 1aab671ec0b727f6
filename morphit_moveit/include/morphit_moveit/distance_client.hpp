// A client of the service `robot_distance` that may be called from any thread and never waits for long.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include <morphit_interfaces/srv/robot_distance.hpp>
#include <rclcpp/rclcpp.hpp>

namespace morphit_moveit
{
/** One for the process, on a node and an executor of its own: planners call from threads of other executors.
 *
 * Parameters of its node `superovoid_distance_client`: `service`, the service's name; `timeout`, the longest wait for
 * an answer [s]; `patience`, how long after a missed answer the service is left alone [s].
 */
class DistanceClient
{
public:
  using Service = morphit_interfaces::srv::RobotDistance;

  /** The client of this process, made at the first call. */
  static DistanceClient& instance();

  /** The answer, or nullptr and the reason why there is none. */
  Service::Response::SharedPtr ask(const Service::Request::SharedPtr& request, std::string& reason);

  /** Warn that a distance is FCL's, at most once in five seconds. */
  void warn(const std::string& reason);

private:
  bool connect(std::string& reason);

  std::mutex mutex_;
  rclcpp::Node::SharedPtr node_;
  rclcpp::Client<Service>::SharedPtr client_;
  rclcpp::Executor::SharedPtr executor_;
  std::chrono::nanoseconds timeout_{ 0 };
  std::chrono::nanoseconds patience_{ 0 };
  std::chrono::steady_clock::time_point not_before_{};
};
}  // namespace morphit_moveit
