// What takes part in a query, in the model frame: the links' spheres, attached bodies, and FCL's objects of all of them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <moveit/collision_detection_fcl/collision_common.hpp>
#include <moveit/robot_state/robot_state.hpp>

#include <morphit_moveit/pairs.hpp>
#include <morphit_moveit/sphere_models.hpp>
#include <morphit_moveit/world_shapes.hpp>

namespace morphit_moveit
{
/** What padding and scale of a link mean for its spheres. */
struct LinkGrowth
{
  double radii = 0.0;   // how much is added to the radii [m]
  bool shrunk = false;  // whether the geometry has become smaller: the radii have not
};

/** A link of the robot, placed. */
struct PlacedLink : PlacedSpheres
{
  PlacedLink(const SphereLink& part, const Eigen::Isometry3d& pose, const LinkGrowth& growth, double* rows)
    : PlacedSpheres(part.body, pose, growth.radii, !growth.shrunk, rows), part(&part)
  {
  }

  BodyName name() const
  {
    return { part->link->getName(), part->link, nullptr };
  }

  const SphereLink* part;
};

/** All links of a robot, asked of the state once. */
class PlacedRobot
{
public:
  /** @param growth of each link of the robot */
  PlacedRobot(std::shared_ptr<const SphereRobot> robot, const moveit::core::RobotState& state,
              const std::vector<LinkGrowth>& growth)
    : robot_(std::move(robot))
  {
    std::size_t count = 0;
    for (const SphereLink& part : robot_->links)
      count += part.body.spheres.size();
    rows_.resize(4 * count);
    links.reserve(robot_->links.size());
    double* rows = rows_.data();
    for (std::size_t i = 0; i < robot_->links.size(); ++i)
    {
      const SphereLink& part = robot_->links[i];
      links.emplace_back(part, state.getGlobalLinkTransform(part.link), growth[i], rows);
      rows += 4 * part.body.spheres.size();
    }
  }
  PlacedRobot(const PlacedRobot&) = delete;
  PlacedRobot& operator=(const PlacedRobot&) = delete;

  std::vector<PlacedLink> links;

private:
  std::shared_ptr<const SphereRobot> robot_;
  std::vector<double> rows_;
};

/** A shape of a body that the robot carries, for FCL. */
struct CarriedShape
{
  collision_detection::FCLGeometryConstPtr geometry;
  fcl::CollisionObjectd object;
  const moveit::core::AttachedBody* body;
  std::size_t index;       // of the shape in the body
  Eigen::Vector3d center;  // of a sphere around it
  double radius;

  BodyName name() const
  {
    return { body->getName(), body->getAttachedLink(), body };
  }
};

/** FCL's objects of an environment, for what spheres do not settle. */
class FclObjects
{
public:
  /** Returns true to see no more. */
  using Visit = std::function<bool(fcl::CollisionObjectd&)>;

  virtual ~FclObjects() = default;
  virtual void visitLink(const moveit::core::LinkModel& link, const moveit::core::RobotState& state,
                         const Visit& visit) const = 0;
  virtual void visitShape(const WorldShape& shape, const Visit& visit) const = 0;
};
}  // namespace morphit_moveit
