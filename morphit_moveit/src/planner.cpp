// What MoveIt loads for `planning_plugins: [morphit_moveit/Planner]`: a client of the node motion_planning.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <moveit/planning_interface/planning_interface.hpp>
#include <moveit/robot_trajectory/robot_trajectory.hpp>
#include <moveit_msgs/msg/move_it_error_codes.hpp>
#include <morphit_moveit/plan_client.hpp>
#include <morphit_moveit/plan_request.hpp>
#include <pluginlib/class_list_macros.hpp>
#include <rclcpp/rclcpp.hpp>

namespace morphit_moveit
{
namespace
{
using Codes = moveit_msgs::msg::MoveItErrorCodes;
using Result = PlanClient::PlanMotion::Result;

const std::string NAME = "morphit";

rclcpp::Logger logger()
{
  return rclcpp::get_logger("morphit_moveit.planner");
}

/** MoveIt's word for what the action calls `status`.
 *
 * A goal that somebody else cancelled is not PREEMPTED: of a goal of its own that nobody cancelled move_group must not be
 * told so, it ends by that. */
int codeOf(const Result& result, double allowed_time)
{
  if (result.status == "found")
    return Codes::SUCCESS;
  if (result.status == "start touches")
    return Codes::START_STATE_IN_COLLISION;
  if (result.status == "goal touches")
    return Codes::GOAL_IN_COLLISION;
  if (result.status == "unreachable")
    return Codes::NO_IK_SOLUTION;
  if (result.status == "cancelled")
    return Codes::ABORT;
  if (result.status == "not found" && result.planning_time >= allowed_time)
    return Codes::TIMED_OUT;
  return Codes::PLANNING_FAILED;
}

/** The answer's trajectory, from a state on.
 *
 * @throw PlanRefusal if it is none of the group's joints. */
robot_trajectory::RobotTrajectoryPtr trajectoryOf(const Result& result, const moveit::core::RobotState& start,
                                                  const std::string& group)
{
  const trajectory_msgs::msg::JointTrajectory& message = result.trajectory;
  const std::size_t count = message.joint_names.size();
  const auto& known = start.getJointModelGroup(group)->getActiveJointModelNames();
  const bool of_group = std::all_of(message.joint_names.begin(), message.joint_names.end(), [&](const auto& name) {
    return std::find(known.begin(), known.end(), name) != known.end();
  });
  const auto fits = [count](const std::vector<double>& values) { return values.empty() || values.size() == count; };
  const bool complete = std::all_of(message.points.begin(), message.points.end(), [&](const auto& point) {
    return point.positions.size() == count && fits(point.velocities) && fits(point.accelerations) && fits(point.effort);
  });
  if (message.points.empty() || count == 0 || !of_group || !complete)
    throw PlanRefusal(Codes::INVALID_MOTION_PLAN, "its answer is no trajectory of group '" + group + "'");
  auto trajectory = std::make_shared<robot_trajectory::RobotTrajectory>(start.getRobotModel(), group);
  trajectory->setRobotTrajectoryMsg(start, message);
  return trajectory;
}

/** Settings below the pipeline's name. */
struct Settings
{
  std::string action = "plan_motion";
  PlanPatience patience;
  std::size_t most_boxes = 500;
};

class Context : public planning_interface::PlanningContext
{
public:
  Context(const std::string& group, std::shared_ptr<PlanClient> client, std::size_t most_boxes)
    : PlanningContext(NAME, group), client_(std::move(client)), most_boxes_(most_boxes)
  {
  }

  void solve(planning_interface::MotionPlanResponse& response) override
  {
    const auto began = std::chrono::steady_clock::now();
    response.planner_id = NAME;
    response.error_code = moveit::core::MoveItErrorCode(Codes::PLANNING_FAILED, "", NAME);
    stop_ = false;
    running_ = true;
    try
    {
      plan(response);
    }
    catch (const PlanRefusal& refusal)
    {
      response.error_code = moveit::core::MoveItErrorCode(refusal.code, refusal.what(), NAME);
    }
    catch (const std::exception& error)
    {
      response.error_code = moveit::core::MoveItErrorCode(Codes::FAILURE, error.what(), NAME);
    }
    running_ = false;
    response.planning_time = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (!response.error_code)
      RCLCPP_ERROR(logger(), "%s", response.error_code.message.c_str());
  }

  void solve(planning_interface::MotionPlanDetailedResponse& response) override
  {
    planning_interface::MotionPlanResponse plain;
    solve(plain);
    response.error_code = plain.error_code;
    response.planner_id = plain.planner_id;
    if (!plain.trajectory)
      return;
    response.trajectory.push_back(plain.trajectory);
    response.description.push_back("plan");
    response.processing_time.push_back(plain.planning_time);
  }

  bool terminate() override
  {
    if (running_)
      stop_ = true;
    return true;
  }

  void clear() override
  {
  }

private:
  void plan(planning_interface::MotionPlanResponse& response)
  {
    const moveit::core::RobotStatePtr start = getPlanningScene()->getCurrentStateUpdated(request_.start_state);
    start->update();
    const PlanRequest asked = planRequest(*getPlanningScene(), *start, request_, most_boxes_);
    std::string notes;
    for (const std::string& note : asked.notes)
    {
      RCLCPP_WARN(logger(), "%s", note.c_str());
      notes += "; " + note;
    }
    const PlanClient::Answer answer = client_->plan(asked.goal, stop_);
    if (answer.outcome == PlanClient::Outcome::STOPPED)
      throw PlanRefusal(Codes::PREEMPTED, "stopped");
    if (answer.outcome == PlanClient::Outcome::LOST)
      throw PlanRefusal(Codes::COMMUNICATION_FAILURE, answer.problem);
    const int code = codeOf(*answer.result, asked.goal.timeout);
    if (code != Codes::SUCCESS)
      throw PlanRefusal(code, answer.result->status + ": " + answer.result->message + notes);
    response.trajectory = trajectoryOf(*answer.result, *start, getGroupName());
    response.error_code = moveit::core::MoveItErrorCode(code, answer.result->certificate, NAME);
    RCLCPP_INFO(logger(), "%s; planned in %.3f s, of that %.3f s for the proof", answer.result->certificate.c_str(),
                answer.result->planning_time, answer.result->proof_time);
  }

  const std::shared_ptr<PlanClient> client_;
  const std::size_t most_boxes_;
  std::atomic<bool> running_{ false };
  std::atomic<bool> stop_{ false };
};
}  // namespace

/** The pipeline's planner. */
class Planner : public planning_interface::PlannerManager
{
public:
  bool initialize(const moveit::core::RobotModelConstPtr& model, const rclcpp::Node::SharedPtr& node,
                  const std::string& parameter_namespace) override
  {
    Settings settings;
    const auto read = [&](const char* name, auto& value) {
      node->get_parameter_or(parameter_namespace + "." + name, value, value);
    };
    auto most_boxes = static_cast<std::int64_t>(settings.most_boxes);
    read("action", settings.action);
    read("server_wait", settings.patience.server);
    read("answer_wait", settings.patience.answer);
    read("most_boxes", most_boxes);
    if (!(settings.patience.server >= 0.0 && settings.patience.answer >= 0.0 && most_boxes > 0))
    {
      RCLCPP_ERROR(logger(), "%s: server_wait and answer_wait are 0 s or more, most_boxes is 1 or more",
                   parameter_namespace.c_str());
      return false;
    }
    try
    {
      client_ = std::make_shared<PlanClient>(settings.action, settings.patience);
    }
    catch (const std::exception& error)
    {
      RCLCPP_ERROR(logger(), "%s", error.what());
      return false;
    }
    model_ = model;
    most_boxes_ = static_cast<std::size_t>(most_boxes);
    return true;
  }

  std::string getDescription() const override
  {
    return NAME;
  }

  void getPlanningAlgorithms(std::vector<std::string>& algorithms) const override
  {
    algorithms = { NAME };
  }

  planning_interface::PlanningContextPtr getPlanningContext(const planning_scene::PlanningSceneConstPtr& scene,
                                                            const planning_interface::MotionPlanRequest& request,
                                                            Codes& code) const override
  {
    if (!scene || !model_->hasJointModelGroup(request.group_name))
    {
      RCLCPP_ERROR(logger(), "no planning scene, or no group '%s'", request.group_name.c_str());
      code.val = scene ? Codes::INVALID_GROUP_NAME : Codes::FAILURE;
      return nullptr;
    }
    auto context = std::make_shared<Context>(request.group_name, client_, most_boxes_);
    context->setPlanningScene(scene);
    context->setMotionPlanRequest(request);
    code.val = Codes::SUCCESS;
    return context;
  }

  bool canServiceRequest(const planning_interface::MotionPlanRequest& request) const override
  {
    return model_->hasJointModelGroup(request.group_name);
  }

private:
  moveit::core::RobotModelConstPtr model_;
  std::shared_ptr<PlanClient> client_;
  std::size_t most_boxes_ = 0;
};
}  // namespace morphit_moveit

PLUGINLIB_EXPORT_CLASS(morphit_moveit::Planner, planning_interface::PlannerManager)
