#include <morphit_moveit/collision_env_spheres.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include <morphit_moveit/pairs.hpp>

namespace morphit_moveit
{
namespace cd = collision_detection;

const std::string CollisionDetectorAllocatorSpheres::NAME("Spheres");
const std::string CollisionDetectorAllocatorSpheresFCL::NAME("SpheresFCL");

namespace
{
constexpr double INFINITE = std::numeric_limits<double>::infinity();

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

void warn(const std::string& reason)
{
  static rclcpp::Clock clock(RCL_STEADY_TIME);
  RCLCPP_WARN_THROTTLE(SphereModels::logger(), clock, 5000, "FCL answers alone: %s", reason.c_str());
}
}  // namespace

/** Shapes of the attached bodies of a state, for FCL. */
class CollisionEnvSpheres::Carried
{
public:
  struct Shape
  {
    cd::FCLGeometryConstPtr geometry;
    fcl::CollisionObjectd object;
    const moveit::core::AttachedBody* body;
    Eigen::Vector3d center;  // of a sphere around it, in the model frame
    double radius;

    BodyName name() const
    {
      return { body->getName(), body->getAttachedLink(), body };
    }
  };

  Carried(const CollisionEnvSpheres& env, const moveit::core::RobotState& state)
  {
    std::vector<const moveit::core::AttachedBody*> bodies;
    state.getAttachedBodies(bodies);
    for (const moveit::core::AttachedBody* body : bodies)
    {
      std::vector<cd::FCLGeometryConstPtr> geometries;
      env.getAttachedBodyObjects(body, geometries);
      for (std::size_t i = 0; i < geometries.size(); ++i)
      {
        const auto& geometry = geometries[i]->collision_geometry_;
        const Eigen::Isometry3d& pose = body->getGlobalCollisionBodyTransforms()[i];
        shapes.push_back({ geometries[i], fcl::CollisionObjectd(geometry, cd::transform2fcl(pose)), body,
                           pose * geometry->aabb_center, geometry->aabb_radius });
      }
    }
  }

  std::vector<Shape> shapes;
};

/** One request about collisions. */
class CollisionEnvSpheres::Check
{
public:
  Check(const CollisionEnvSpheres& env, const moveit::core::RobotState& state, const cd::CollisionRequest& req,
        cd::CollisionResult& res, const cd::AllowedCollisionMatrix* acm)
    : env_(env), state_(state), req_(req), res_(res), acm_(acm), data_(&req, &res, acm)
  {
    data_.enableGroup(env.getRobotModel());
  }

  const ActiveLinks* active() const
  {
    return data_.active_components_only_;
  }
  bool done() const
  {
    return data_.done_;
  }

  /** Take a pair whose spheres touch as colliding, unless the matrix says otherwise. `meetings(n)` gives n of them. */
  template <class Meetings>
  void collide(const BodyName& a, cd::BodyType type_a, const BodyName& b, cd::BodyType type_b, Meetings&& meetings)
  {
    const cd::AllowedCollision::Type allowed = allowance(a.name, b.name, acm_);
    if (allowed == cd::AllowedCollision::ALWAYS)
      return;
    std::vector<cd::Contact>* stored = nullptr;
    std::size_t wanted = 0;
    if (req_.contacts && res_.contact_count < req_.max_contacts)
    {
      stored = &res_.contacts[std::minmax(a.name, b.name)];
      if (stored->size() < req_.max_contacts_per_pair)
        wanted = std::min(req_.max_contacts_per_pair - stored->size(), req_.max_contacts - res_.contact_count);
    }
    cd::DecideContactFn decide;
    if (allowed == cd::AllowedCollision::CONDITIONAL)
      acm_->getAllowedCollision(a.name, b.name, decide);
    else
      res_.collision = true;
    if (decide || wanted > 0)
    {
      for (const Meeting& meeting : meetings(decide ? std::numeric_limits<std::size_t>::max() : wanted))
      {
        cd::Contact contact;
        contact.pos = 0.5 * (meeting.first + meeting.second);
        contact.normal = meeting.normal;
        contact.depth = -meeting.distance;
        contact.body_name_1 = a.name;
        contact.body_type_1 = type_a;
        contact.body_name_2 = b.name;
        contact.body_type_2 = type_b;
        contact.nearest_points[0] = meeting.first;
        contact.nearest_points[1] = meeting.second;
        if (decide && decide(contact))
          continue;
        res_.collision = true;
        if (wanted == 0)
          break;
        stored->push_back(contact);
        ++res_.contact_count;
        --wanted;
      }
    }
    if (stored && stored->empty())
      res_.contacts.erase(std::minmax(a.name, b.name));
    if (res_.collision && (!req_.contacts || res_.contact_count >= req_.max_contacts))
      data_.done_ = true;
    else if (req_.is_done)
      data_.done_ = req_.is_done(res_);
  }

  /** Settle a pair whose geometry is known to collide without FCL, where nothing more is asked of it; whether that was so. */
  bool settle(const BodyName& a, const BodyName& b)
  {
    if (req_.contacts)
      return false;
    const cd::AllowedCollision::Type allowed = allowance(a.name, b.name, acm_);
    if (allowed == cd::AllowedCollision::CONDITIONAL)
      return false;
    if (allowed == cd::AllowedCollision::NEVER)
      res_.collision = data_.done_ = true;
    return true;
  }

  /** Ask FCL about a pair, with all its rules. */
  void confirm(fcl::CollisionObjectd& a, fcl::CollisionObjectd& b)
  {
    cd::collisionCallback(&a, &b, &data_);
  }

  void confirm(const PlacedLink& link, fcl::CollisionObjectd& other)
  {
    env_.forShapes(link.part->link, state_, [&](fcl::CollisionObjectd& object) {
      confirm(object, other);
      return done();
    });
  }

  void confirm(const PlacedLink& a, const PlacedLink& b)
  {
    env_.forShapes(a.part->link, state_, [&](fcl::CollisionObjectd& object) {
      confirm(b, object);
      return done();
    });
  }

  void confirm(const PlacedLink& link, const WorldShape& shape)
  {
    env_.forObjects(shape, [&](fcl::CollisionObjectd& object) {
      confirm(link, object);
      return done();
    });
  }

private:
  const CollisionEnvSpheres& env_;
  const moveit::core::RobotState& state_;
  const cd::CollisionRequest& req_;
  cd::CollisionResult& res_;
  const cd::AllowedCollisionMatrix* acm_;
  cd::CollisionData data_;
};

/** One request about distances: pairs are gone through by lower bounds of their distances. */
class CollisionEnvSpheres::Distances
{
public:
  Distances(const CollisionEnvSpheres& env, const moveit::core::RobotState& state, const cd::DistanceRequest& req,
            cd::DistanceResult& res)
    : env_(env), state_(state), req_(req), res_(res), data_(&req, &res)
  {
  }

  void add(double bound, std::function<void(Distances&)> measure)
  {
    pairs_.push_back({ bound, std::move(measure) });
  }

  void run()
  {
    std::sort(pairs_.begin(), pairs_.end(), [](const Pair& a, const Pair& b) { return a.bound < b.bound; });
    for (const Pair& pair : pairs_)
    {
      // Depths of FCL know no bound: where spheres overlap it is asked.
      if (data_.done || (pair.bound > 0.0 && pair.bound >= limit()))
        return;
      pair.measure(*this);
    }
  }

  /** What is further away is not of interest [m]. */
  double limit() const
  {
    return req_.type == cd::DistanceRequestType::GLOBAL ? res_.minimum_distance.distance : req_.distance_threshold;
  }

  void measure(const PlacedLink& link, const WorldShape& shape)
  {
    Meeting meeting;
    if (nearest(link, shape, limit(), meeting))
      store(link.name(), { shape.object }, cd::BodyTypes::WORLD_OBJECT, meeting);
  }

  /** Between two links; with `confirm`, FCL's where their spheres overlap. */
  void measure(const PlacedLink& a, const PlacedLink& b, bool confirm)
  {
    Meeting meeting;
    if (!nearest(a, b, limit(), meeting))
      return;
    if (confirm && meeting.distance <= 0.0)
      measureByFcl(a, b);
    else
      store(a.name(), b.name(), cd::BodyTypes::ROBOT_LINK, meeting);
  }

  void measureByFcl(fcl::CollisionObjectd& a, fcl::CollisionObjectd& b)
  {
    double unused = INFINITE;
    cd::distanceCallback(&a, &b, &data_, unused);
  }

  void measureByFcl(const PlacedLink& link, fcl::CollisionObjectd& other)
  {
    env_.forShapes(link.part->link, state_, [&](fcl::CollisionObjectd& object) {
      measureByFcl(object, other);
      return data_.done;
    });
  }

  void measureByFcl(const PlacedLink& a, const PlacedLink& b)
  {
    env_.forShapes(a.part->link, state_, [&](fcl::CollisionObjectd& object) {
      measureByFcl(b, object);
      return data_.done;
    });
  }

private:
  struct Pair
  {
    double bound;
    std::function<void(Distances&)> measure;
  };

  void store(const BodyName& a, const BodyName& b, cd::BodyType type_b, const Meeting& meeting)
  {
    cd::DistanceResultsData data;
    data.distance = meeting.distance;
    data.link_names[0] = a.name;
    data.link_names[1] = b.name;
    data.body_types[0] = cd::BodyTypes::ROBOT_LINK;
    data.body_types[1] = type_b;
    data.normal = meeting.normal;
    if (req_.enable_nearest_points)
    {
      data.nearest_points[0] = meeting.first;
      data.nearest_points[1] = meeting.second;
    }
    if (data < res_.minimum_distance)
      res_.minimum_distance = data;
    res_.collision = res_.collision || data.distance <= 0.0;
    data_.done = res_.collision && !req_.enable_signed_distance;
    if (req_.type == cd::DistanceRequestType::GLOBAL)
      return;
    // A pair of bodies may have several pairs of shapes.
    auto& stored = res_.distances[std::minmax(a.name, b.name)];
    if (req_.type == cd::DistanceRequestType::SINGLE && !stored.empty())
    {
      if (data < stored.front())
        stored.front() = data;
    }
    else if (req_.type != cd::DistanceRequestType::LIMITED || stored.size() < req_.max_contacts_per_body)
      stored.push_back(data);
  }

  const CollisionEnvSpheres& env_;
  const moveit::core::RobotState& state_;
  const cd::DistanceRequest& req_;
  cd::DistanceResult& res_;
  cd::DistanceData data_;
  std::vector<Pair> pairs_;
};

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
  {
    const double padding = getLinkPadding(part.link->getName()), scale = getLinkScale(part.link->getName());
    LinkGrowth growth{ 0.0, padding < 0.0 || scale < 1.0 };
    for (const shapes::ShapeConstPtr& shape : part.link->getShapes())
    {
      // Each point of a mesh or sphere moves by the padding; a corner of a box by that much along each axis.
      const bool radial = shape->type == shapes::MESH || shape->type == shapes::SPHERE;
      const double moved = std::max(padding, 0.0) * (radial ? 1.0 : std::sqrt(3.0));
      // Scaled about its middle, a shape's point moves by no more than its share of the shape's size.
      const double size = scale > 1.0 ? solidOf(shape)->bounds().diagonal().norm() : 0.0;
      growth.radii = std::max(growth.radii, moved + std::max(scale - 1.0, 0.0) * size);
    }
    growth_.push_back(growth);
  }
}

bool CollisionEnvSpheres::canAnswer(const WorldShapes& world) const
{
  if (world.missing().empty())
    return true;
  warn(world.missing());
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

template <class Visit>
void CollisionEnvSpheres::forShapes(const moveit::core::LinkModel* link, const moveit::core::RobotState& state,
                                    Visit&& visit) const
{
  const auto first = static_cast<std::size_t>(link->getFirstCollisionBodyTransformIndex());
  for (std::size_t i = 0; i < link->getShapes().size(); ++i)
  {
    if (!robot_fcl_objs_[first + i])
      continue;
    fcl::CollisionObjectd object(*robot_fcl_objs_[first + i]);
    object.setTransform(cd::transform2fcl(state.getCollisionBodyTransform(link, i)));
    if (visit(object))
      return;
  }
}

template <class Visit>
void CollisionEnvSpheres::forObjects(const WorldShape& shape, Visit&& visit) const
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
  if (req.cost || !canAnswer(*world))
    return checkRobotCollisionHelper(req, res, state, acm);
  Check check(*this, state, req, res, acm);
  std::vector<std::pair<const PlacedLink*, const WorldShape*>> undecided;
  const PlacedRobot robot(slot_->get(), state, growth_);
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
  for (Carried::Shape& carried : Carried(*this, state).shapes)
  {
    if (check.done())
      break;
    world->tree().within(carried.center, carried.radius, [&](std::size_t index) {
      forObjects(world->shapes()[index], [&](fcl::CollisionObjectd& object) {
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
  if (req.cost)
    return checkSelfCollisionHelper(req, res, state, acm);
  Check check(*this, state, req, res, acm);
  const PlacedRobot robot(slot_->get(), state, growth_);
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
  Carried carried(*this, state);
  for (std::size_t i = 0; i < carried.shapes.size() && !check.done(); ++i)
  {
    Carried::Shape& shape = carried.shapes[i];
    for (const PlacedLink& link : links)
      if (!check.done() && touches(link, shape.center, shape.radius))
        check.confirm(link, shape.object);
    for (std::size_t j = i + 1; j < carried.shapes.size() && !check.done(); ++j)
      if (shape.object.getAABB().overlap(carried.shapes[j].object.getAABB()))
        check.confirm(shape.object, carried.shapes[j].object);
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
  if (!canAnswer(*world))
    return cd::CollisionEnvFCL::distanceRobot(req, res, state);
  const PlacedRobot robot(slot_->get(), state, growth_);
  const std::vector<PlacedLink>& links = robot.links;
  Carried carried(*this, state);
  Distances distances(*this, state, req, res);
  for (const WorldShape& shape : world->shapes())
  {
    const BodyName object{ shape.object };
    for (const PlacedLink& link : links)
    {
      if (!isAsked(link.name(), object, req))
        continue;
      const double bound = shape.box.exteriorDistance(link.center) - link.radius;
      if (decidesOnWorld(*link.part))
        distances.add(bound, [&](Distances& d) { d.measure(link, shape); });
      else
        distances.add(bound, [&](Distances& d) {
          forObjects(shape, [&](fcl::CollisionObjectd& object) {
            d.measureByFcl(link, object);
            return false;
          });
        });
    }
    for (Carried::Shape& body : carried.shapes)
      if (isAsked(body.name(), object, req))
        distances.add(shape.box.exteriorDistance(body.center) - body.radius, [&](Distances& d) {
          forObjects(shape, [&](fcl::CollisionObjectd& object) {
            d.measureByFcl(body.object, object);
            return false;
          });
        });
  }
  distances.run();
}

void CollisionEnvSpheres::distanceSelf(const cd::DistanceRequest& req, cd::DistanceResult& res,
                                       const moveit::core::RobotState& state) const
{
  const PlacedRobot robot(slot_->get(), state, growth_);
  const std::vector<PlacedLink>& links = robot.links;
  Carried carried(*this, state);
  Distances distances(*this, state, req, res);
  for (std::size_t i = 0; i < links.size(); ++i)
  {
    for (std::size_t j = i + 1; j < links.size(); ++j)
    {
      const PlacedLink &a = links[i], &b = links[j];
      if (!isAsked(a.name(), b.name(), req))
        continue;
      const double bound = (a.center - b.center).norm() - a.radius - b.radius;
      if (decidesOnWorld(*a.part) && decidesOnWorld(*b.part))
        distances.add(bound, [&](Distances& d) { d.measure(a, b, !decidesOnPair(*a.part, *b.part)); });
      else
        distances.add(bound, [&](Distances& d) { d.measureByFcl(a, b); });
    }
  }
  for (std::size_t i = 0; i < carried.shapes.size(); ++i)
  {
    Carried::Shape& body = carried.shapes[i];
    for (const PlacedLink& link : links)
      if (isAsked(body.name(), link.name(), req))
        distances.add((body.center - link.center).norm() - body.radius - link.radius,
                      [&](Distances& d) { d.measureByFcl(link, body.object); });
    for (std::size_t j = i + 1; j < carried.shapes.size(); ++j)
    {
      Carried::Shape& other = carried.shapes[j];
      if (body.body != other.body && isAsked(body.name(), other.name(), req))
        distances.add((body.center - other.center).norm() - body.radius - other.radius,
                      [&](Distances& d) { d.measureByFcl(body.object, other.object); });
    }
  }
  distances.run();
}
}  // namespace morphit_moveit
