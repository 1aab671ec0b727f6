// What MoveIt loads for `collision_detector: Spheres`, `SpheresFCL` and `Superovoid`.
#include <moveit/collision_detection/collision_plugin.hpp>
#include <morphit_moveit/collision_env_spheres.hpp>
#include <morphit_moveit/collision_env_superovoid.hpp>
#include <pluginlib/class_list_macros.hpp>

namespace morphit_moveit
{
template <class Allocator>
class CollisionDetectorPlugin : public collision_detection::CollisionPlugin
{
public:
  bool initialize(const planning_scene::PlanningScenePtr& scene) const override
  {
    scene->allocateCollisionDetector(Allocator::create());
    return true;
  }
};

using CollisionDetectorSpheresPlugin = CollisionDetectorPlugin<CollisionDetectorAllocatorSpheres>;
using CollisionDetectorSpheresFCLPlugin = CollisionDetectorPlugin<CollisionDetectorAllocatorSpheresFCL>;
using CollisionDetectorSuperovoidPlugin = CollisionDetectorPlugin<CollisionDetectorAllocatorSuperovoid>;
}  // namespace morphit_moveit

PLUGINLIB_EXPORT_CLASS(morphit_moveit::CollisionDetectorSpheresPlugin, collision_detection::CollisionPlugin)
PLUGINLIB_EXPORT_CLASS(morphit_moveit::CollisionDetectorSpheresFCLPlugin, collision_detection::CollisionPlugin)
PLUGINLIB_EXPORT_CLASS(morphit_moveit::CollisionDetectorSuperovoidPlugin, collision_detection::CollisionPlugin)
