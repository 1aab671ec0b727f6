// The client of the action `plan_motion`: asks, waits, cancels.
#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include <morphit_interfaces/action/plan_motion.hpp>
#include <rclcpp/rclcpp.hpp>
#include <rclcpp_action/rclcpp_action.hpp>

namespace morphit_moveit
{
/** How long a client waits [s]. */
struct PlanPatience
{
  double server = 3.0;  // for the server to be there
  double answer = 5.0;  // for the answer, beyond the time that the planner was given
};

/** Asks by a node and a thread of its own, so that it depends on no executor of the process. Any number of threads may ask. */
class PlanClient
{
public:
  using PlanMotion = morphit_interfaces::action::PlanMotion;

  enum class Outcome
  {
    ANSWERED,
    STOPPED,  // because `stop` was set
    LOST      // no server, or none any more, or no answer in time
  };

  struct Answer
  {
    Outcome outcome;
    PlanMotion::Result::SharedPtr result;  // if it was answered
    std::string problem;                   // if not
  };

  /** @param action its name, relative to the namespace of the process */
  PlanClient(const std::string& action, const PlanPatience& patience);
  ~PlanClient();

  /** Blocks until there is an answer, or why there is none.
   *
   * @param stop as soon as it is set the goal is cancelled at the server */
  Answer plan(const PlanMotion::Goal& goal, const std::atomic<bool>& stop);

private:
  using Client = rclcpp_action::Client<PlanMotion>;
  using Clock = std::chrono::steady_clock;

  bool waitForServer(const std::atomic<bool>& stop) const;
  template <class Future>
  std::string wait(const Future& future, Clock::time_point end, const std::atomic<bool>& stop, const char* what) const;
  void cancel(const std::shared_future<Client::GoalHandle::SharedPtr>& accepted) const;

  const PlanPatience patience_;
  rclcpp::Node::SharedPtr node_;
  const std::string name_;  // of the action, in full
  Client::SharedPtr client_;
  rclcpp::executors::SingleThreadedExecutor executor_;
  std::promise<void> ended_;
  std::thread thread_;
};
}  // namespace morphit_moveit
