// Collision checks of FCL, distances of the node superovoid_distance.
#pragma once

#include <string>

#include <moveit/collision_detection/collision_detector_allocator.hpp>
#include <moveit/collision_detection_fcl/collision_env_fcl.hpp>

namespace morphit_moveit
{
/** Answers distanceSelf and distanceRobot by the service `robot_distance`; everything else is CollisionEnvFCL.
 *
 * Distances are those of the robot's superovoids: padding and scale of links do not apply. Where the service is not
 * there, is late, or cannot answer (an octomap, a cone or a plane in the world, a link without superovoid), the
 * distance is FCL's and a warning says so, at most once in five seconds.
 */
class CollisionEnvSuperovoid : public collision_detection::CollisionEnvFCL
{
public:
  using collision_detection::CollisionEnvFCL::CollisionEnvFCL;
  CollisionEnvSuperovoid(const CollisionEnvSuperovoid& other, const collision_detection::WorldPtr& world);

  // CollisionEnv has inline overloads of these names.
  using collision_detection::CollisionEnv::distanceRobot;
  using collision_detection::CollisionEnv::distanceSelf;

  void distanceSelf(const collision_detection::DistanceRequest& req, collision_detection::DistanceResult& res,
                    const moveit::core::RobotState& state) const override;

  void distanceRobot(const collision_detection::DistanceRequest& req, collision_detection::DistanceResult& res,
                     const moveit::core::RobotState& state) const override;
};

/** Makes environments of this kind for planning scenes; its name is "Superovoid". */
class CollisionDetectorAllocatorSuperovoid
  : public collision_detection::CollisionDetectorAllocatorTemplate<CollisionEnvSuperovoid,
                                                                   CollisionDetectorAllocatorSuperovoid>
{
public:
  static const std::string NAME;
};
}  // namespace morphit_moveit
