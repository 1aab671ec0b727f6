// Collisions as FCL sees them, distances by the superovoids of the robot's links.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <moveit/collision_detection/collision_detector_allocator.hpp>

#include <morphit_moveit/collision_env_spheres.hpp>
#include <morphit_moveit/superovoid_models.hpp>

namespace morphit_moveit
{
/** Collision checks of `SpheresFCL`; distances of smooth shapes, so that small motions change them and their normals little.
 *
 * A link's superovoids grow until they contain its collision geometry, so that no distance is greater than the link's own.
 * FCL measures pairs of which a link has no superovoids, pairs with a plane, and what the robot carries against the world.
 *
 * Any number of threads may ask at once.
 */
class CollisionEnvSuperovoid : public CollisionEnvSpheresFCL
{
public:
  CollisionEnvSuperovoid(const moveit::core::RobotModelConstPtr& model, double padding = 0.0, double scale = 1.0);
  CollisionEnvSuperovoid(const moveit::core::RobotModelConstPtr& model, const collision_detection::WorldPtr& world,
                         double padding = 0.0, double scale = 1.0);
  CollisionEnvSuperovoid(const CollisionEnvSuperovoid& other, const collision_detection::WorldPtr& world);

  // CollisionEnv has inline overloads of these names.
  using collision_detection::CollisionEnv::distanceRobot;
  using collision_detection::CollisionEnv::distanceSelf;

  void distanceSelf(const collision_detection::DistanceRequest& req, collision_detection::DistanceResult& res,
                    const moveit::core::RobotState& state) const override;

  void distanceRobot(const collision_detection::DistanceRequest& req, collision_detection::DistanceResult& res,
                     const moveit::core::RobotState& state) const override;

private:
  struct Link;
  struct Robot;

  std::shared_ptr<const Slot<SuperovoidRobot>> slot_;
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
