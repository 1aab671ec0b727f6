// MoveIt's distance requests as requests of the service `robot_distance`, and its answers as MoveIt's results.
#pragma once

#include <string>

#include <moveit/collision_detection/collision_common.hpp>
#include <moveit/collision_detection/world.hpp>
#include <moveit/robot_state/robot_state.hpp>
#include <morphit_interfaces/srv/robot_distance.hpp>

namespace morphit_moveit
{
using RobotDistance = morphit_interfaces::srv::RobotDistance;

/** Which pairs are asked for. */
enum class Scope
{
  SELF,
  WORLD
};

/** Fill a request for a state; poses are in the frame of the robot's root link.
 *
 * The pairs are those that MoveIt's own check would compute: not within one body, one of the two active, not always
 * allowed by the matrix, and no attached body with its touch links. Without any pair there is nothing to ask.
 *
 * @return false if a shape cannot be expressed; `reason` says which.
 */
bool fillRequest(const collision_detection::DistanceRequest& req, const moveit::core::RobotState& state,
                 const collision_detection::World& world, Scope scope, RobotDistance::Request& request,
                 std::string& reason);

/** Add an answer to a result, which may hold other distances already; points and normals in the model frame. */
void addToResult(const RobotDistance::Response& response, const collision_detection::DistanceRequest& req,
                 const moveit::core::RobotState& state, collision_detection::DistanceResult& res);
}  // namespace morphit_moveit
