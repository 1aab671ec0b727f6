// What MoveIt loads for `collision_detector: Spheres` and `SpheresFCL`.
#include <moveit/collision_detection/collision_plugin.hpp>
#include <morphit_moveit/collision_env_spheres.hpp>
#include <pluginlib/class_list_macros.hpp>

namespace morphit_moveit
{
class CollisionDetectorSpheresPlugin : public collision_detection::CollisionPlugin
{
public:
  bool initialize(const planning_scene::PlanningScenePtr& scene) const override
  {
    scene->allocateCollisionDetector(CollisionDetectorAllocatorSpheres::create());
    return true;
  }
};

class CollisionDetectorSpheresFCLPlugin : public collision_detection::CollisionPlugin
{
public:
  bool initialize(const planning_scene::PlanningScenePtr& scene) const override
  {
    scene->allocateCollisionDetector(CollisionDetectorAllocatorSpheresFCL::create());
    return true;
  }
};
}  // namespace morphit_moveit

PLUGINLIB_EXPORT_CLASS(morphit_moveit::CollisionDetectorSpheresPlugin, collision_detection::CollisionPlugin)
PLUGINLIB_EXPORT_CLASS(morphit_moveit::CollisionDetectorSpheresFCLPlugin, collision_detection::CollisionPlugin)
