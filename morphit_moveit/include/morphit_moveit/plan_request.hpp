// A planning scene and a request of MoveIt as a goal of the action `plan_motion`.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include <moveit/planning_interface/planning_request.hpp>
#include <moveit/planning_scene/planning_scene.hpp>
#include <moveit/robot_state/robot_state.hpp>
#include <morphit_interfaces/action/plan_motion.hpp>
#include <morphit_interfaces/msg/world_object.hpp>

namespace morphit_moveit
{
/** A request that cannot be asked of the planner. */
class PlanRefusal : public std::runtime_error
{
public:
  /** @param code of moveit_msgs/MoveItErrorCodes */
  PlanRefusal(int code, const std::string& message) : std::runtime_error(message), code(code)
  {
  }

  const int code;
};

/** A goal, and what was simplified for it. */
struct PlanRequest
{
  morphit_interfaces::action::PlanMotion::Goal goal;
  std::vector<std::string> notes;
};

/** What the planner is asked.
 *
 * @param state where the motion starts, with what it carries
 * @param most_boxes that a mesh with dents, or an octomap, becomes
 * @throw PlanRefusal with the cause, for path constraints, goals that are none, and groups that are no arm. */
PlanRequest planRequest(const planning_scene::PlanningScene& scene, const moveit::core::RobotState& state,
                        const planning_interface::MotionPlanRequest& request, std::size_t most_boxes);
}  // namespace morphit_moveit
