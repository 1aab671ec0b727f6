#include <morphit_moveit/plan_client.hpp>

#include <algorithm>
#include <chrono>
#include <exception>

#include <morphit_moveit/own_node.hpp>

namespace morphit_moveit
{
namespace
{
using Seconds = std::chrono::duration<double>;

// How often a wait looks whether to go on.
constexpr std::chrono::milliseconds LOOK(20);
// For a server to say that it has let go of a goal.
constexpr double LET_GO = 1.0;

std::chrono::steady_clock::duration span(double seconds)
{
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(Seconds(seconds));
}
}  // namespace

PlanClient::PlanClient(const std::string& action, const PlanPatience& patience)
  : patience_(patience)
  , node_(makeOwnNode("motion_planning_client"))
  , name_(rclcpp::expand_topic_or_service_name(action, node_->get_name(), node_->get_namespace()))
  , client_(rclcpp_action::create_client<PlanMotion>(node_, action))
{
  executor_.add_node(node_);
  thread_ = std::thread([this, ended = ended_.get_future().share()] { executor_.spin_until_future_complete(ended); });
}

PlanClient::~PlanClient()
{
  ended_.set_value();
  executor_.cancel();
  thread_.join();
}

bool PlanClient::waitForServer(const std::atomic<bool>& stop) const
{
  const auto end = Clock::now() + span(patience_.server);
  while (!client_->action_server_is_ready())
  {
    if (stop || !rclcpp::ok() || Clock::now() >= end)
      return false;
    std::this_thread::sleep_for(LOOK);
  }
  return true;
}

template <class Future>
std::string PlanClient::wait(const Future& future, Clock::time_point end, const std::atomic<bool>& stop,
                             const char* what) const
{
  while (future.wait_for(LOOK) != std::future_status::ready)
  {
    if (stop)
      return "stopped";
    if (!rclcpp::ok())
      return "ROS was shut down";
    if (!client_->action_server_is_ready())
      return "the node motion_planning ended";
    if (Clock::now() >= end)
      return std::string("the node motion_planning did not ") + what + " in time";
  }
  return "";
}

void PlanClient::cancel(const std::shared_future<Client::GoalHandle::SharedPtr>& accepted) const
{
  const std::atomic<bool> never{ false };
  const auto end = Clock::now() + span(LET_GO);
  try
  {
    if (!wait(accepted, end, never, "").empty() || !accepted.get())
      return;
    const auto result = client_->async_get_result(accepted.get());
    client_->async_cancel_goal(accepted.get());
    wait(result, end, never, "");
  }
  catch (const std::exception& error)
  {
    RCLCPP_WARN(node_->get_logger(), "the goal was not cancelled: %s", error.what());
  }
}

PlanClient::Answer PlanClient::plan(const PlanMotion::Goal& goal, const std::atomic<bool>& stop)
{
  if (!waitForServer(stop))
  {
    if (stop)
      return { Outcome::STOPPED, nullptr, "stopped" };
    return { Outcome::LOST, nullptr,
             "no server of the action '" + name_ + "': start it by `ros2 run morphit_ros motion_planning`" };
  }
  const auto end = Clock::now() + span(goal.timeout + goal.improvement_time + patience_.answer);
  const auto accepted = client_->async_send_goal(goal);
  std::string problem = wait(accepted, end, stop, "take the goal");
  if (problem.empty() && !accepted.get())
    return { Outcome::LOST, nullptr, "the node motion_planning did not take the goal" };
  if (problem.empty())
  {
    const auto result = client_->async_get_result(accepted.get());
    problem = wait(result, end, stop, "answer");
    if (problem.empty())
    {
      const auto wrapped = result.get();
      if (wrapped.result && !wrapped.result->status.empty())
        return { Outcome::ANSWERED, wrapped.result, "" };
      return { Outcome::LOST, nullptr, "the node motion_planning gave no answer" };
    }
  }
  cancel(accepted);
  return { stop ? Outcome::STOPPED : Outcome::LOST, nullptr, problem };
}
}  // namespace morphit_moveit
