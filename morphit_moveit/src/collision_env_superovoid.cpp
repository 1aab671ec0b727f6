#include <morphit_moveit/collision_env_superovoid.hpp>

#include <optional>
#include <stdexcept>

#include <morphit_moveit/distance_query.hpp>

namespace morphit_moveit
{
namespace cd = collision_detection;

const std::string CollisionDetectorAllocatorSuperovoid::NAME("Superovoid");

/** A link, placed. */
struct CollisionEnvSuperovoid::Link
{
  const moveit::core::LinkModel* model;
  PlacedSuperovoids shapes;
  Eigen::Vector3d center;  // of a ball around the link's own geometry
  double radius;

  BodyName name() const
  {
    return { model->getName(), model, nullptr };
  }
  bool known() const
  {
    return !shapes.pieces().empty();
  }
  double bound(const Eigen::AlignedBox3d& box) const
  {
    return known() ? shapes.bound(box) : box.exteriorDistance(center) - radius;
  }
  double bound(const Link& other) const
  {
    return known() && other.known() ? shapes.bound(other.shapes) :
                                      (center - other.center).norm() - radius - other.radius;
  }
};

/** What takes part in a request: links, and what they carry. */
struct CollisionEnvSuperovoid::Robot
{
  struct Carried
  {
    CarriedShape shape;
    std::optional<PlacedSolid> solid;  // if superovoids can be held against it
    Eigen::AlignedBox3d box;
  };

  Robot(const CollisionEnvSuperovoid& env, const moveit::core::RobotState& state) : superovoids(env.slot_->get())
  {
    for (const SuperovoidLink& link : superovoids->links)
    {
      const Eigen::Isometry3d& pose = state.getGlobalLinkTransform(link.link);
      const double padding = env.growthOf(*link.link).radii;
      links.push_back({ link.link, PlacedSuperovoids(link.pieces, pose, link.growth + padding),
                        pose * link.link->getCenteredBoundingBoxOffset(),
                        0.5 * link.link->getShapeExtentsAtOrigin().norm() + padding });
    }
    for (CarriedShape& shape : env.carriedBy(state))
    {
      // Spheres that robot_spheres has sent for the link: its superovoids stand for it.
      if (shape.body->getName() == shape.body->getAttachedLinkName())
        continue;
      const Eigen::Vector3d around = Eigen::Vector3d::Constant(shape.radius);
      Carried body{ shape, {}, { shape.center - around, shape.center + around } };
      try
      {
        body.solid.emplace(solidOf(shape.body->getShapes()[shape.index]),
                           shape.body->getGlobalCollisionBodyTransforms()[shape.index]);
      }
      catch (const std::invalid_argument&)
      {
        // FCL knows what to do with it.
      }
      carried.push_back(std::move(body));
    }
  }

  std::shared_ptr<const SuperovoidRobot> superovoids;
  std::vector<Link> links;
  std::vector<Carried> carried;
};

CollisionEnvSuperovoid::CollisionEnvSuperovoid(const moveit::core::RobotModelConstPtr& model, double padding,
                                               double scale)
  : CollisionEnvSpheresFCL(model, padding, scale), slot_(SuperovoidModels::instance().slot(model))
{
}

CollisionEnvSuperovoid::CollisionEnvSuperovoid(const moveit::core::RobotModelConstPtr& model, const cd::WorldPtr& world,
                                               double padding, double scale)
  : CollisionEnvSpheresFCL(model, world, padding, scale), slot_(SuperovoidModels::instance().slot(model))
{
}

CollisionEnvSuperovoid::CollisionEnvSuperovoid(const CollisionEnvSuperovoid& other, const cd::WorldPtr& world)
  : CollisionEnvSpheresFCL(other, world), slot_(other.slot_)
{
}

void CollisionEnvSuperovoid::distanceSelf(const cd::DistanceRequest& req, cd::DistanceResult& res,
                                          const moveit::core::RobotState& state) const
{
  Robot robot(*this, state);
  DistanceQuery distances(*this, state, req, res);
  for (std::size_t i = 0; i < robot.links.size(); ++i)
  {
    for (std::size_t j = i + 1; j < robot.links.size(); ++j)
    {
      const Link &a = robot.links[i], &b = robot.links[j];
      if (!isAsked(a.name(), b.name(), req))
        continue;
      distances.add(a.bound(b), [&] {
        if (!a.known() || !b.known())
          return distances.measureByFcl(*a.model, *b.model);
        distances.measure(a.name(), b.name(), cd::BodyTypes::ROBOT_LINK, [&](double limit, Meeting& meeting) {
          return nearest(a.shapes, b.shapes, limit, meeting);
        });
      });
    }
  }
  for (std::size_t i = 0; i < robot.carried.size(); ++i)
  {
    Robot::Carried& body = robot.carried[i];
    for (const Link& link : robot.links)
    {
      // An attached body touches the link that carries it.
      if (body.shape.body->getAttachedLink() == link.model || !isAsked(body.shape.name(), link.name(), req))
        continue;
      distances.add(link.bound(body.box), [&] {
        if (!link.known() || !body.solid || !body.solid->solid->hasParts())
          return distances.measureByFcl(*link.model, body.shape.object);
        distances.measure(link.name(), body.shape.name(), cd::BodyTypes::ROBOT_ATTACHED,
                          [&](double limit, Meeting& meeting) {
                            return nearest(link.shapes, *body.solid, limit, meeting);
                          });
      });
    }
    for (std::size_t j = i + 1; j < robot.carried.size(); ++j)
    {
      Robot::Carried& other = robot.carried[j];
      if (body.shape.body->getAttachedLink() != other.shape.body->getAttachedLink() &&
          isAsked(body.shape.name(), other.shape.name(), req))
        distances.add((body.shape.center - other.shape.center).norm() - body.shape.radius - other.shape.radius,
                      [&] { distances.measureByFcl(body.shape.object, other.shape.object); });
    }
  }
  distances.run();
}

void CollisionEnvSuperovoid::distanceRobot(const cd::DistanceRequest& req, cd::DistanceResult& res,
                                           const moveit::core::RobotState& state) const
{
  const auto world = this->world();
  if (!canAnswer(world->missing()))
    return cd::CollisionEnvFCL::distanceRobot(req, res, state);
  Robot robot(*this, state);
  DistanceQuery distances(*this, state, req, res);
  for (const WorldShape& shape : world->shapes())
  {
    const BodyName object{ shape.object };
    for (const Link& link : robot.links)
    {
      if (!isAsked(link.name(), object, req))
        continue;
      distances.add(link.bound(shape.box), [&] {
        if (!link.known() || !shape.solid->hasParts())
          return distances.measureByFcl(*link.model, shape);
        distances.measure(link.name(), { shape.object }, cd::BodyTypes::WORLD_OBJECT,
                          [&](double limit, Meeting& meeting) { return nearest(link.shapes, shape, limit, meeting); });
      });
    }
    for (Robot::Carried& body : robot.carried)
      if (isAsked(body.shape.name(), object, req))
        distances.add(shape.box.exteriorDistance(body.shape.center) - body.shape.radius,
                      [&] { distances.measureByFcl(body.shape, shape); });
  }
  distances.run();
}
}  // namespace morphit_moveit
