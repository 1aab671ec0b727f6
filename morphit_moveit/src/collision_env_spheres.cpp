#include <morphit_moveit/collision_env_spheres.hpp>

#include <algorithm>
#include <cmath>

#include <morphit_moveit/collision_query.hpp>
#include <morphit_moveit/distance_query.hpp>

namespace morphit_moveit
{
namespace cd = collision_detection;

const std::string CollisionDetectorAllocatorSpheres::NAME("Spheres");
const std::string CollisionDetectorAllocatorSpheresFCL::NAME("SpheresFCL");

CollisionEnvSpheres::CollisionEnvSpheres(const moveit::core::RobotModelConstPtr& model, double padding, double scale)
  : cd::CollisionEnvFCL(model, padding, scale), slot_(SphereModels::instance().slot(model))
{
  updateGrowth();
  observe();
}

CollisionEnvSpheres::CollisionEnvSpheres(const moveit::core::RobotModelConstPtr& model, const cd::WorldPtr& world,
                                         double padding, double scale)
  : cd::CollisionEnvFCL(model, world, padding, scale), slot_(SphereModels::instance().slot(model))
{
  updateGrowth();
  observe();
}

CollisionEnvSpheres::CollisionEnvSpheres(const CollisionEnvSpheres& other, const cd::WorldPtr& world)
  : cd::CollisionEnvFCL(other, world), slot_(other.slot_), growth_(other.growth_)
{
  // FCL's objects are taken over as they are, and so is this: the two worlds are equal.
  const std::lock_guard<std::mutex> lock(other.mutex_);
  world_shapes_ = other.world_shapes_;
  observe();
}

CollisionEnvSpheres::~CollisionEnvSpheres()
{
  getWorld()->removeObserver(observer_);
}

void CollisionEnvSpheres::observe()
{
  observer_ = getWorld()->addObserver([this](const cd::World::ObjectConstPtr&, cd::World::Action) {
    const std::lock_guard<std::mutex> lock(mutex_);
    world_shapes_.reset();
  });
}

void CollisionEnvSpheres::setWorld(const cd::WorldPtr& world)
{
  if (world == getWorld())
    return;
  getWorld()->removeObserver(observer_);
  cd::CollisionEnvFCL::setWorld(world);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    world_shapes_.reset();
  }
  observe();
}

std::shared_ptr<const WorldShapes> CollisionEnvSpheres::world() const
{
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!world_shapes_)
    world_shapes_ = std::make_shared<const WorldShapes>(*getWorld());
  return world_shapes_;
}

void CollisionEnvSpheres::updatedPaddingOrScaling(const std::vector<std::string>& links)
{
  cd::CollisionEnvFCL::updatedPaddingOrScaling(links);
  updateGrowth();
}

void CollisionEnvSpheres::updateGrowth()
{
  growth_.clear();
  for (const SphereLink& part : slot_->get()->links)
    growth_.push_back(growthOf(*part.link));
}

LinkGrowth CollisionEnvSpheres::growthOf(const moveit::core::LinkModel& link) const
{
  const double padding = getLinkPadding(link.getName()), scale = getLinkScale(link.getName());
  LinkGrowth growth{ 0.0, padding < 0.0 || scale < 1.0 };
  for (const shapes::ShapeConstPtr& shape : link.getShapes())
  {
    // Each point of a mesh or sphere moves by the padding; a corner of a box by that much along each axis.
    const bool radial = shape->type == shapes::MESH || shape->type == shapes::SPHERE;
    const double moved = std::max(padding, 0.0) * (radial ? 1.0 : std::sqrt(3.0));
    // Scaled about its middle, a shape's point moves by no more than its share of the shape's size.
    const double size = scale > 1.0 ? solidOf(shape)->bounds().diagonal().norm() : 0.0;
    growth.radii = std::max(growth.radii, moved + std::max(scale - 1.0, 0.0) * size);
  }
  return growth;
}

std::vector<CarriedShape> CollisionEnvSpheres::carriedBy(const moveit::core::RobotState& state) const
{
  std::vector<CarriedShape> result;
  std::vector<const moveit::core::AttachedBody*> bodies;
  state.getAttachedBodies(bodies);
  for (const moveit::core::AttachedBody* body : bodies)
  {
    std::vector<cd::FCLGeometryConstPtr> geometries;
    getAttachedBodyObjects(body, geometries);
    for (std::size_t i = 0; i < geometries.size(); ++i)
    {
      const auto& geometry = geometries[i]->collision_geometry_;
      const Eigen::Isometry3d& pose = body->getGlobalCollisionBodyTransforms()[i];
      result.push_back({ geometries[i], fcl::CollisionObjectd(geometry, cd::transform2fcl(pose)), body, i,
                         pose * geometry->aabb_center, geometry->aabb_radius });
    }
  }
  return result;
}

bool CollisionEnvSpheres::canAnswer(const std::string& missing) const
{
  if (missing.empty())
    return true;
  static rclcpp::Clock clock(RCL_STEADY_TIME);
  RCLCPP_WARN_THROTTLE(SphereModels::logger(), clock, 5000, "FCL answers alone: %s", missing.c_str());
  return false;
}

bool CollisionEnvSpheres::decidesOnWorld(const SphereLink& link) const
{
  return link.source == SphereLink::Source::OWN || (link.source == SphereLink::Source::FITTED && fittedDecide());
}

bool CollisionEnvSpheres::decidesOnPair(const SphereLink& a, const SphereLink& b) const
{
  if (a.source == SphereLink::Source::OWN && b.source == SphereLink::Source::OWN)
    return true;
  return !SphereModels::instance().confirmSelf() && decidesOnWorld(a) && decidesOnWorld(b);
}

void CollisionEnvSpheres::visitLink(const moveit::core::LinkModel& link, const moveit::core::RobotState& state,
                                    const Visit& visit) const
{
  const auto first = static_cast<std::size_t>(link.getFirstCollisionBodyTransformIndex());
  for (std::size_t i = 0; i < link.getShapes().size(); ++i)
  {
    if (!robot_fcl_objs_[first + i])
      continue;
    fcl::CollisionObjectd object(*robot_fcl_objs_[first + i]);
    object.setTransform(cd::transform2fcl(state.getCollisionBodyTransform(&link, i)));
    if (visit(object))
      return;
  }
}

void CollisionEnvSpheres::visitShape(const WorldShape& shape, const Visit& visit) const
{
  const auto found = fcl_objs_.find(shape.object);
  if (found == fcl_objs_.end())
    return;
  const auto& objects = found->second.collision_objects_;
  // As many as the object has shapes, but for shapes that FCL has refused: then all of them.
  const bool aligned = objects.size() == shape.count;
  for (std::size_t i = aligned ? shape.index : 0; i < (aligned ? shape.index + 1 : objects.size()); ++i)
    if (visit(*objects[i]))
      return;
}

void CollisionEnvSpheres::checkRobot(const cd::CollisionRequest& req, cd::CollisionResult& res,
                                     const moveit::core::RobotState& state, const cd::AllowedCollisionMatrix* acm) const
{
  const auto world = this->world();
  const auto spheres = slot_->get();
  if (req.cost || !canAnswer(world->missing()) || !canAnswer(spheres->missing))
    return checkRobotCollisionHelper(req, res, state, acm);
  CollisionQuery check(getRobotModel(), *this, state, req, res, acm);
  std::vector<std::pair<const PlacedLink*, const WorldShape*>> undecided;
  const PlacedRobot robot(spheres, state, growth_);
  const std::vector<PlacedLink>& links = robot.links;
  for (const PlacedLink& link : links)
  {
    if (check.active() && check.active()->count(link.part->link) == 0)
      continue;
    const bool decide = decidesOnWorld(*link.part);
    world->tree().within(link.center, link.radius, [&](std::size_t index) {
      const WorldShape& shape = world->shapes()[index];
      const Verdict found = verdict(link, shape, decide);
      if (found == Verdict::FREE)
        return false;
      if (decide)
        check.collide(link.name(), cd::BodyTypes::ROBOT_LINK, { shape.object }, cd::BodyTypes::WORLD_OBJECT,
                      [&](std::size_t count) { return meetings(link, shape, count); });
      else if (found == Verdict::UNDECIDED || !check.settle(link.name(), { shape.object }))
        undecided.emplace_back(&link, &shape);
      return check.done();
    });
    if (check.done())
      break;
  }
  for (const auto& [link, shape] : undecided)
    if (!check.done())
      check.confirm(*link, *shape);
  std::vector<CarriedShape> bodies = carriedBy(state);
  for (CarriedShape& carried : bodies)
  {
    if (check.done())
      break;
    world->tree().within(carried.center, carried.radius, [&](std::size_t index) {
      visitShape(world->shapes()[index], [&](fcl::CollisionObjectd& object) {
        if (carried.object.getAABB().overlap(object.getAABB()))
          check.confirm(carried.object, object);
        return check.done();
      });
      return check.done();
    });
  }
  if (req.distance)
    addDistance(req, res, acm, [&](const cd::DistanceRequest& distance_req, cd::DistanceResult& distance_res) {
      distanceRobot(distance_req, distance_res, state);
    });
}

void CollisionEnvSpheres::checkSelf(const cd::CollisionRequest& req, cd::CollisionResult& res,
                                    const moveit::core::RobotState& state, const cd::AllowedCollisionMatrix* acm) const
{
  const auto spheres = slot_->get();
  if (req.cost || !canAnswer(spheres->missing))
    return checkSelfCollisionHelper(req, res, state, acm);
  CollisionQuery check(getRobotModel(), *this, state, req, res, acm);
  const PlacedRobot robot(spheres, state, growth_);
  const std::vector<PlacedLink>& links = robot.links;
  std::vector<std::pair<const PlacedLink*, const PlacedLink*>> undecided;
  for (std::size_t i = 0; i < links.size() && !check.done(); ++i)
  {
    for (std::size_t j = i + 1; j < links.size() && !check.done(); ++j)
    {
      const PlacedLink &a = links[i], &b = links[j];
      if (!overlap(a, b) || !isActive(a.name(), b.name(), check.active()))
        continue;
      // The matrix is asked late: a look costs as much as a hundred pairs of spheres.
      const Verdict found = verdict(a, b, [&] {
        return allowance(a.name().name, b.name().name, acm) != cd::AllowedCollision::ALWAYS;
      });
      if (found == Verdict::FREE)
        continue;
      if (decidesOnPair(*a.part, *b.part))
        check.collide(a.name(), cd::BodyTypes::ROBOT_LINK, b.name(), cd::BodyTypes::ROBOT_LINK,
                      [&](std::size_t count) { return meetings(a, b, count); });
      else if (found == Verdict::UNDECIDED || !check.settle(a.name(), b.name()))
        undecided.emplace_back(&a, &b);
    }
  }
  for (const auto& [a, b] : undecided)
    if (!check.done())
      check.confirm(*a, *b);
  std::vector<CarriedShape> carried = carriedBy(state);
  for (std::size_t i = 0; i < carried.size() && !check.done(); ++i)
  {
    CarriedShape& shape = carried[i];
    for (const PlacedLink& link : links)
      if (!check.done() && touches(link, shape.center, shape.radius))
        check.confirm(link, shape.object);
    for (std::size_t j = i + 1; j < carried.size() && !check.done(); ++j)
      if (shape.object.getAABB().overlap(carried[j].object.getAABB()))
        check.confirm(shape.object, carried[j].object);
  }
  if (req.distance)
    addDistance(req, res, acm, [&](const cd::DistanceRequest& distance_req, cd::DistanceResult& distance_res) {
      distanceSelf(distance_req, distance_res, state);
    });
}

template <class Measure>
void CollisionEnvSpheres::addDistance(const cd::CollisionRequest& req, cd::CollisionResult& res,
                                      const cd::AllowedCollisionMatrix* acm, Measure&& measure) const
{
  cd::DistanceRequest distance_req;
  cd::DistanceResult distance_res;
  distance_req.group_name = req.group_name;
  distance_req.acm = acm;
  distance_req.enableGroup(getRobotModel());
  measure(distance_req, distance_res);
  res.distance = distance_res.minimum_distance.distance;
  if (req.detailed_distance)
    res.distance_result = distance_res;
}

void CollisionEnvSpheres::checkSelfCollision(const cd::CollisionRequest& req, cd::CollisionResult& res,
                                             const moveit::core::RobotState& state) const
{
  checkSelf(req, res, state, nullptr);
}

void CollisionEnvSpheres::checkSelfCollision(const cd::CollisionRequest& req, cd::CollisionResult& res,
                                             const moveit::core::RobotState& state,
                                             const cd::AllowedCollisionMatrix& acm) const
{
  checkSelf(req, res, state, &acm);
}

void CollisionEnvSpheres::checkRobotCollision(const cd::CollisionRequest& req, cd::CollisionResult& res,
                                              const moveit::core::RobotState& state) const
{
  checkRobot(req, res, state, nullptr);
}

void CollisionEnvSpheres::checkRobotCollision(const cd::CollisionRequest& req, cd::CollisionResult& res,
                                              const moveit::core::RobotState& state,
                                              const cd::AllowedCollisionMatrix& acm) const
{
  checkRobot(req, res, state, &acm);
}

void CollisionEnvSpheres::distanceRobot(const cd::DistanceRequest& req, cd::DistanceResult& res,
                                        const moveit::core::RobotState& state) const
{
  const auto world = this->world();
  const auto spheres = slot_->get();
  if (!canAnswer(world->missing()) || !canAnswer(spheres->missing))
    return cd::CollisionEnvFCL::distanceRobot(req, res, state);
  const PlacedRobot robot(spheres, state, growth_);
  const std::vector<PlacedLink>& links = robot.links;
  std::vector<CarriedShape> carried = carriedBy(state);
  DistanceQuery distances(*this, state, req, res);
  for (const WorldShape& shape : world->shapes())
  {
    const BodyName object{ shape.object };
    for (const PlacedLink& link : links)
    {
      if (!isAsked(link.name(), object, req))
        continue;
      const double bound = shape.box.exteriorDistance(link.center) - link.radius;
      if (decidesOnWorld(*link.part))
        distances.add(bound, [&] { distances.measure(link, shape); });
      else
        distances.add(bound, [&] { distances.measureByFcl(*link.part->link, shape); });
    }
    for (CarriedShape& body : carried)
      if (isAsked(body.name(), object, req))
        distances.add(shape.box.exteriorDistance(body.center) - body.radius,
                      [&] { distances.measureByFcl(body, shape); });
  }
  distances.run();
}

void CollisionEnvSpheres::distanceSelf(const cd::DistanceRequest& req, cd::DistanceResult& res,
                                       const moveit::core::RobotState& state) const
{
  const auto spheres = slot_->get();
  if (!canAnswer(spheres->missing))
    return cd::CollisionEnvFCL::distanceSelf(req, res, state);
  const PlacedRobot robot(spheres, state, growth_);
  const std::vector<PlacedLink>& links = robot.links;
  std::vector<CarriedShape> carried = carriedBy(state);
  DistanceQuery distances(*this, state, req, res);
  for (std::size_t i = 0; i < links.size(); ++i)
  {
    for (std::size_t j = i + 1; j < links.size(); ++j)
    {
      const PlacedLink &a = links[i], &b = links[j];
      if (!isAsked(a.name(), b.name(), req))
        continue;
      const double bound = (a.center - b.center).norm() - a.radius - b.radius;
      if (decidesOnWorld(*a.part) && decidesOnWorld(*b.part))
        distances.add(bound, [&] { distances.measure(a, b, !decidesOnPair(*a.part, *b.part)); });
      else
        distances.add(bound, [&] { distances.measureByFcl(*a.part->link, *b.part->link); });
    }
  }
  for (std::size_t i = 0; i < carried.size(); ++i)
  {
    CarriedShape& body = carried[i];
    for (const PlacedLink& link : links)
      if (isAsked(body.name(), link.name(), req))
        distances.add((body.center - link.center).norm() - body.radius - link.radius,
                      [&] { distances.measureByFcl(*link.part->link, body.object); });
    for (std::size_t j = i + 1; j < carried.size(); ++j)
    {
      CarriedShape& other = carried[j];
      if (body.body != other.body && isAsked(body.name(), other.name(), req))
        distances.add((body.center - other.center).norm() - body.radius - other.radius,
                      [&] { distances.measureByFcl(body.object, other.object); });
    }
  }
  distances.run();
}
}  // namespace morphit_moveit
