#include <morphit_moveit/distance_client.hpp>

#include <exception>
#include <memory>

#include <morphit_moveit/own_node.hpp>

namespace morphit_moveit
{
DistanceClient& DistanceClient::instance()
{
  // Never destroyed: at the end of the process the middleware may be gone before static objects are.
  static DistanceClient* const client = new DistanceClient();
  return *client;
}

bool DistanceClient::connect(std::string& reason)
{
  if (!rclcpp::ok())
  {
    reason = "rclcpp is not initialised";
    return false;
  }
  if (client_)
    return true;
  try
  {
    node_ = makeOwnNode("superovoid_distance_client");
    const auto name = node_->declare_parameter<std::string>("service", "robot_distance");
    const auto seconds = [this](const std::string& parameter, double value) {
      return std::chrono::duration_cast<std::chrono::nanoseconds>(
          std::chrono::duration<double>(node_->declare_parameter<double>(parameter, value)));
    };
    timeout_ = seconds("timeout", 0.1);
    patience_ = seconds("patience", 1.0);
    executor_ = std::make_shared<rclcpp::executors::SingleThreadedExecutor>();
    executor_->add_node(node_);
    client_ = node_->create_client<Service>(name);
    return true;
  }
  catch (const std::exception& error)
  {
    node_.reset();
    reason = error.what();
    return false;
  }
}

DistanceClient::Service::Response::SharedPtr DistanceClient::ask(const Service::Request::SharedPtr& request,
                                                                 std::string& reason)
{
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!connect(reason))
    return nullptr;
  if (std::chrono::steady_clock::now() < not_before_)
  {
    reason = "service " + std::string(client_->get_service_name()) + " was late before";
    return nullptr;
  }
  if (!client_->service_is_ready())
  {
    reason = "there is no service " + std::string(client_->get_service_name());
    return nullptr;
  }
  auto future = client_->async_send_request(request);
  if (executor_->spin_until_future_complete(future, timeout_) != rclcpp::FutureReturnCode::SUCCESS)
  {
    client_->remove_pending_request(future);
    not_before_ = std::chrono::steady_clock::now() + patience_;
    reason = "service " + std::string(client_->get_service_name()) + " did not answer in time";
    return nullptr;
  }
  auto response = future.get();
  if (!response->success)
  {
    reason = response->message;
    return nullptr;
  }
  return response;
}

void DistanceClient::warn(const std::string& reason)
{
  const auto logger = rclcpp::get_logger("morphit_moveit.superovoid");
  static rclcpp::Clock clock(RCL_STEADY_TIME);
  RCLCPP_WARN_THROTTLE(logger, clock, 5000, "Distances are those of FCL: %s", reason.c_str());
}
}  // namespace morphit_moveit
