#include <morphit_moveit/plan_request.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include <geometric_shapes/shapes.h>
#include <moveit_msgs/msg/move_it_error_codes.hpp>
#include <octomap/octomap.h>
#include <srdfdom/model.h>

#include <morphit_moveit/pairs.hpp>
#include <morphit_moveit/plain_shapes.hpp>

namespace morphit_moveit
{
namespace
{
using Codes = moveit_msgs::msg::MoveItErrorCodes;
using Constraints = moveit_msgs::msg::Constraints;
using Goal = morphit_interfaces::action::PlanMotion::Goal;
using morphit_interfaces::msg::DistanceShape;
using morphit_interfaces::msg::WorldObject;

// Finest cells of a mesh with dents [m].
constexpr double FINEST = 0.01;

geometry_msgs::msg::Point pointOf(const Eigen::Vector3d& p)
{
  geometry_msgs::msg::Point point;
  point.x = p.x();
  point.y = p.y();
  point.z = p.z();
  return point;
}

geometry_msgs::msg::Pose poseOf(const Eigen::Isometry3d& at)
{
  geometry_msgs::msg::Pose pose;
  pose.position = pointOf(at.translation());
  const Eigen::Quaterniond turn(at.linear());
  pose.orientation.x = turn.x();
  pose.orientation.y = turn.y();
  pose.orientation.z = turn.z();
  pose.orientation.w = turn.w();
  return pose;
}

Eigen::Vector3d vectorOf(const geometry_msgs::msg::Vector3& v)
{
  return { v.x, v.y, v.z };
}

Eigen::Isometry3d isometryOf(const geometry_msgs::msg::Pose& pose)
{
  const Eigen::Quaterniond turn(pose.orientation.w, pose.orientation.x, pose.orientation.y, pose.orientation.z);
  return Eigen::Translation3d(pose.position.x, pose.position.y, pose.position.z) * turn.normalized();
}

DistanceShape shapeOf(std::uint8_t type, std::vector<double> dimensions, const Eigen::Isometry3d& at)
{
  DistanceShape shape;
  shape.type = type;
  shape.dimensions = std::move(dimensions);
  shape.pose = poseOf(at);
  return shape;
}

DistanceShape hullOf(const std::vector<Eigen::Vector3d>& corners, const Eigen::Isometry3d& at)
{
  DistanceShape shape = shapeOf(DistanceShape::CONVEX_MESH, {}, at);
  std::transform(corners.begin(), corners.end(), std::back_inserter(shape.vertices), pointOf);
  return shape;
}

/** The occupied cells of a map: as large cells as it takes to have no more than `most` boxes. */
Boxes boxesOf(const octomap::OcTree& tree, std::size_t most)
{
  struct Cell
  {
    octomap::OcTreeKey key;
    unsigned int depth;
  };
  std::vector<Cell> occupied;
  for (auto leaf = tree.begin_leafs(), end = tree.end_leafs(); leaf != end; ++leaf)
    if (tree.isNodeOccupied(*leaf))
      occupied.push_back({ leaf.getKey(), leaf.getDepth() });
  const unsigned int deepest = tree.getTreeDepth();
  Boxes result;
  result.origin = Eigen::Vector3d::Constant(-tree.getResolution() * static_cast<double>(1u << (deepest - 1)));
  for (unsigned int up = 0; up <= deepest; ++up)
  {
    std::set<std::tuple<int, int, int, int>> cells;
    for (const Cell& cell : occupied)
    {
      // A leaf high up in the tree is several cells of this size.
      const unsigned int bits = std::max(up, deepest - cell.depth), down = bits - up;
      cells.emplace((cell.key[0] >> bits) << down, (cell.key[1] >> bits) << down, (cell.key[2] >> bits) << down,
                    1 << down);
    }
    std::vector<GridBox> boxes;
    for (const auto& [x, y, z, size] : cells)
      boxes.push_back({ Eigen::Array3i(x, y, z), Eigen::Array3i(x, y, z) + size });
    result.boxes = joined(std::move(boxes));
    result.edge = tree.getResolution() * static_cast<double>(1u << up);
    if (result.boxes.size() <= most)
      break;
  }
  return result;
}

/** A mesh as the planner takes it. */
struct PlainMesh
{
  std::vector<Eigen::Vector3d> corners;  // of a convex one; empty otherwise
  Boxes boxes;                           // of any other
};

/** That of a shape, or the one made before of the same, if the shape is still in use: scenes share theirs. */
std::shared_ptr<const PlainMesh> plainMesh(const shapes::ShapeConstPtr& shape, std::size_t most_boxes)
{
  using Key = std::weak_ptr<const shapes::Shape>;
  static std::mutex mutex;
  static std::map<Key, std::pair<std::size_t, std::shared_ptr<const PlainMesh>>, std::owner_less<Key>> known;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    for (auto item = known.begin(); item != known.end();)
      item = item->first.expired() ? known.erase(item) : std::next(item);
    const auto found = known.find(shape);
    if (found != known.end() && found->second.first == most_boxes)
      return found->second.second;
  }
  const auto& mesh = static_cast<const shapes::Mesh&>(*shape);
  TriangleMesh::Vertices vertices(mesh.vertex_count);
  for (std::size_t i = 0; i < vertices.size(); ++i)
    vertices[i] = Eigen::Map<const Eigen::Vector3d>(mesh.vertices + 3 * i);
  TriangleMesh::Triangles triangles(mesh.triangle_count);
  for (std::size_t i = 0; i < triangles.size(); ++i)
    triangles[i] = { mesh.triangles[3 * i], mesh.triangles[3 * i + 1], mesh.triangles[3 * i + 2] };
  const TriangleMesh surface(vertices, triangles);
  const auto plain = std::make_shared<PlainMesh>();
  if (isConvex(surface))
    plain->corners = std::move(vertices);
  else
    plain->boxes = boxesOf(surface, most_boxes, FINEST);
  const std::lock_guard<std::mutex> lock(mutex);
  known[shape] = { most_boxes, plain };
  return plain;
}

/** Makes shapes of an object, and notes what became larger than it is. */
class ShapeWriter
{
public:
  ShapeWriter(WorldObject& object, std::vector<std::string>& notes, std::size_t most_boxes)
    : object_(object), notes_(notes), most_(most_boxes)
  {
  }

  void write(const shapes::ShapeConstPtr& shape, const Eigen::Isometry3d& at)
  {
    switch (shape->type)
    {
      case shapes::SPHERE:
        add(shapeOf(DistanceShape::SPHERE, { static_cast<const shapes::Sphere&>(*shape).radius }, at));
        return;
      case shapes::BOX:
      {
        const double* const size = static_cast<const shapes::Box&>(*shape).size;
        add(shapeOf(DistanceShape::BOX, { size[0], size[1], size[2] }, at));
        return;
      }
      case shapes::CYLINDER:
      {
        const auto& cylinder = static_cast<const shapes::Cylinder&>(*shape);
        add(shapeOf(DistanceShape::CYLINDER, { cylinder.length, cylinder.radius }, at));
        return;
      }
      case shapes::CONE:
      {
        const auto& cone = static_cast<const shapes::Cone&>(*shape);
        add(hullOf(coneCorners(cone.radius, cone.length), at));
        return;
      }
      case shapes::PLANE:
      {
        const auto& plane = static_cast<const shapes::Plane&>(*shape);
        add(shapeOf(DistanceShape::HALF_SPACE, {},
                    at * halfSpacePose(Eigen::Vector3d(plane.a, plane.b, plane.c), plane.d)));
        return;
      }
      case shapes::MESH:
        write(*plainMesh(shape, most_), at);
        return;
      case shapes::OCTREE:
      {
        const octomap::OcTree& tree = *static_cast<const shapes::OcTree&>(*shape).octree;
        const Boxes boxes = boxesOf(tree, most_);
        if (boxes.edge > tree.getResolution())
          note("its octomap is taken in cells of " + std::to_string(boxes.edge) + " m");
        add(boxes, at);
        return;
      }
      default:
        throw std::invalid_argument("a shape is of a kind that is not known");
    }
  }

private:
  void write(const PlainMesh& mesh, const Eigen::Isometry3d& at)
  {
    if (!mesh.corners.empty())
    {
      add(hullOf(mesh.corners, at));
      return;
    }
    note("its mesh is not convex, and is taken as " + std::to_string(mesh.boxes.boxes.size()) +
         " boxes of cells of " + std::to_string(mesh.boxes.edge) + " m");
    add(mesh.boxes, at);
  }

  void add(const Boxes& boxes, const Eigen::Isometry3d& at)
  {
    for (std::size_t i = 0; i < boxes.boxes.size(); ++i)
    {
      const Eigen::AlignedBox3d box = boxes[i];
      const Eigen::Vector3d size = box.sizes();
      add(shapeOf(DistanceShape::BOX, { size.x(), size.y(), size.z() }, at * Eigen::Translation3d(box.center())));
    }
  }

  void add(DistanceShape shape)
  {
    object_.shapes.push_back(std::move(shape));
  }

  void note(const std::string& text)
  {
    notes_.push_back("object '" + object_.id + "': " + text);
  }

  WorldObject& object_;
  std::vector<std::string>& notes_;
  const std::size_t most_;
};

/** Writes a goal. */
class Writer
{
public:
  Writer(const planning_scene::PlanningScene& scene, const moveit::core::RobotState& state,
         const planning_interface::MotionPlanRequest& request)
    : scene_(scene)
    , state_(state)
    , request_(request)
    , model_(*scene.getRobotModel())
    , T_root_model_(state.getGlobalLinkTransform(model_.getRootLink()).inverse())
  {
  }

  PlanRequest write(std::size_t most_boxes)
  {
    if (hasConstraints(request_.path_constraints) || !request_.trajectory_constraints.constraints.empty())
      throw PlanRefusal(Codes::PLANNING_FAILED,
                        "path and trajectory constraints are not known to it: ask the pipeline ompl for them");
    Goal& goal = result_.goal;
    writeStart();
    if (request_.goal_constraints.empty())
      throw PlanRefusal(Codes::INVALID_GOAL_CONSTRAINTS, "there is no goal");
    for (const Constraints& constraints : request_.goal_constraints)
      writeGoal(constraints);
    goal.world = Goal::WORLD_REPLACE;
    writeObjects(most_boxes);
    writeAllowed();
    goal.timeout = request_.allowed_planning_time;
    goal.velocity_scaling = share(request_.max_velocity_scaling_factor);
    goal.acceleration_scaling = share(request_.max_acceleration_scaling_factor);
    return std::move(result_);
  }

private:
  static bool hasConstraints(const Constraints& constraints)
  {
    return !(constraints.joint_constraints.empty() && constraints.position_constraints.empty() &&
             constraints.orientation_constraints.empty() && constraints.visibility_constraints.empty());
  }

  static double share(double factor)
  {
    return std::min(1.0, std::max(0.0, factor));
  }

  void writeStart()
  {
    const moveit::core::JointModelGroup& group = *model_.getJointModelGroup(request_.group_name);
    for (const moveit::core::JointModel* joint : group.getActiveJointModels())
    {
      if (joint->getVariableCount() != 1)
        throw PlanRefusal(Codes::INVALID_GROUP_NAME, "group '" + request_.group_name + "' has joint '" +
                                                         joint->getName() + "' of several variables");
      result_.goal.joint_names.push_back(joint->getName());
      result_.goal.start.push_back(state_.getVariablePosition(joint->getFirstVariableIndex()));
    }
    if (result_.goal.start.empty())
      throw PlanRefusal(Codes::INVALID_GROUP_NAME, "group '" + request_.group_name + "' has no joint that moves");
  }

  void writeGoal(const Constraints& constraints)
  {
    if (!constraints.visibility_constraints.empty())
      throw PlanRefusal(Codes::INVALID_GOAL_CONSTRAINTS, "goals of visibility are not known to it");
    const std::size_t positions = constraints.position_constraints.size();
    const std::size_t orientations = constraints.orientation_constraints.size();
    if (!constraints.joint_constraints.empty() && positions + orientations == 0)
      writeJointGoal(constraints.joint_constraints);
    else if (constraints.joint_constraints.empty() && positions == 1 && orientations == 1)
      writePoseGoal(constraints.position_constraints[0], constraints.orientation_constraints[0]);
    else
      throw PlanRefusal(Codes::INVALID_GOAL_CONSTRAINTS,
                        "a goal is joint constraints alone, or one position and one orientation of the same link");
  }

  void writeJointGoal(const std::vector<moveit_msgs::msg::JointConstraint>& constraints)
  {
    // A joint that no constraint names stays where it starts, which none of them forbids.
    Goal& goal = result_.goal;
    std::vector<double> values = goal.start;
    for (const moveit_msgs::msg::JointConstraint& constraint : constraints)
    {
      const auto name = std::find(goal.joint_names.begin(), goal.joint_names.end(), constraint.joint_name);
      if (name == goal.joint_names.end())
        throw PlanRefusal(Codes::INVALID_GOAL_CONSTRAINTS, "joint '" + constraint.joint_name + "' is none of group '" +
                                                               request_.group_name + "'");
      values[static_cast<std::size_t>(name - goal.joint_names.begin())] = constraint.position;
    }
    goal.joint_goals.insert(goal.joint_goals.end(), values.begin(), values.end());
  }

  void writePoseGoal(const moveit_msgs::msg::PositionConstraint& position,
                     const moveit_msgs::msg::OrientationConstraint& orientation)
  {
    Goal& goal = result_.goal;
    if (position.link_name != orientation.link_name || !model_.hasLinkModel(position.link_name))
      throw PlanRefusal(Codes::INVALID_LINK_NAME, "position of link '" + position.link_name + "' and orientation of '" +
                                                      orientation.link_name + "': not one link of the robot");
    if (!goal.link.empty() && goal.link != position.link_name)
      throw PlanRefusal(Codes::INVALID_GOAL_CONSTRAINTS,
                        "goals of links '" + goal.link + "' and '" + position.link_name + "': it takes those of one");
    const auto& region = position.constraint_region;
    if (region.primitive_poses.size() + region.mesh_poses.size() != 1)
      throw PlanRefusal(Codes::INVALID_GOAL_CONSTRAINTS, "the region of a position is not one shape");
    const geometry_msgs::msg::Pose& center =
        region.primitive_poses.empty() ? region.mesh_poses[0] : region.primitive_poses[0];
    const geometry_msgs::msg::Quaternion& q = orientation.orientation;
    Eigen::Isometry3d pose = Eigen::Isometry3d::Identity();
    pose.linear() = (frame(orientation.header.frame_id).linear() *
                     Eigen::Quaterniond(q.w, q.x, q.y, q.z).normalized().toRotationMatrix());
    pose.translation() = frame(position.header.frame_id) * isometryOf(center).translation() -
                         pose.linear() * vectorOf(position.target_point_offset);
    if (!pose.matrix().allFinite())
      throw PlanRefusal(Codes::INVALID_GOAL_CONSTRAINTS, "the pose of a goal is not finite");
    goal.link = position.link_name;
    geometry_msgs::msg::PoseStamped stamped;
    stamped.pose = poseOf(pose);
    goal.pose_goals.push_back(stamped);
  }

  /** T_root_frame. */
  Eigen::Isometry3d frame(const std::string& name) const
  {
    if (name.empty())
      return T_root_model_;
    if (!scene_.knowsFrameTransform(state_, name))
      throw PlanRefusal(Codes::FRAME_TRANSFORM_FAILURE, "frame '" + name + "' of a goal is not known");
    return T_root_model_ * scene_.getFrameTransform(state_, name);
  }

  void writeObjects(std::size_t most_boxes)
  {
    for (const auto& [id, object] : *scene_.getWorld())
      writeObject(id, T_root_model_ * object->pose_, object->shapes_, object->shape_poses_, most_boxes);
    std::vector<const moveit::core::AttachedBody*> bodies;
    state_.getAttachedBodies(bodies);
    for (const moveit::core::AttachedBody* body : bodies)
    {
      // Of the name of a link these are its own spheres, which robot_spheres sends; the planner has them.
      if (model_.hasLinkModel(body->getName()))
        continue;
      WorldObject* const object =
          writeObject(body->getName(), body->getPose(), body->getShapes(), body->getShapePoses(), most_boxes);
      if (!object)
        continue;
      object->attached_to = body->getAttachedLinkName();
      object->touch_links.assign(body->getTouchLinks().begin(), body->getTouchLinks().end());
    }
  }

  WorldObject* writeObject(const std::string& id, const Eigen::Isometry3d& at,
                           const std::vector<shapes::ShapeConstPtr>& shapes,
                           const EigenSTL::vector_Isometry3d& poses, std::size_t most_boxes)
  {
    WorldObject object;
    object.id = id;
    object.pose = poseOf(at);
    ShapeWriter writer(object, result_.notes, most_boxes);
    try
    {
      for (std::size_t i = 0; i < shapes.size(); ++i)
        writer.write(shapes[i], poses[i]);
    }
    catch (const std::invalid_argument& error)
    {
      throw PlanRefusal(Codes::PLANNING_FAILED, "object '" + id + "': " + error.what());
    }
    // One of subframes alone is nothing to touch.
    if (object.shapes.empty())
      return nullptr;
    result_.goal.objects.push_back(std::move(object));
    return &result_.goal.objects.back();
  }

  void writeAllowed()
  {
    std::vector<std::string> bodies = model_.getLinkModelNamesWithCollisionGeometry();
    const std::size_t links = bodies.size();
    std::vector<bool> fixed(links, false);
    for (const WorldObject& object : result_.goal.objects)
    {
      bodies.push_back(object.id);
      fixed.push_back(object.attached_to.empty());
    }
    // Of pairs that the SRDF leaves out because they were never seen to touch the planner makes sure itself.
    std::set<std::pair<std::string, std::string>> never;
    for (const srdf::Model::CollisionPair& pair : model_.getSRDF()->getDisabledCollisionPairs())
      if (pair.reason_ == "Never")
        never.insert(std::minmax(pair.link1_, pair.link2_));
    const auto& matrix = scene_.getAllowedCollisionMatrix();
    for (std::size_t i = 0; i < bodies.size(); ++i)
      for (std::size_t j = i + 1; j < bodies.size(); ++j)
        if (!(fixed[i] && fixed[j]) && never.count(std::minmax(bodies[i], bodies[j])) == 0 &&
            allowance(bodies[i], bodies[j], &matrix) == collision_detection::AllowedCollision::ALWAYS)
        {
          result_.goal.allowed_1.push_back(bodies[i]);
          result_.goal.allowed_2.push_back(bodies[j]);
        }
  }

  const planning_scene::PlanningScene& scene_;
  const moveit::core::RobotState& state_;
  const planning_interface::MotionPlanRequest& request_;
  const moveit::core::RobotModel& model_;
  const Eigen::Isometry3d T_root_model_;
  PlanRequest result_;
};
}  // namespace

PlanRequest planRequest(const planning_scene::PlanningScene& scene, const moveit::core::RobotState& state,
                        const planning_interface::MotionPlanRequest& request, std::size_t most_boxes)
{
  return Writer(scene, state, request).write(most_boxes);
}
}  // namespace morphit_moveit
