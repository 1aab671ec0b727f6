#include <morphit_moveit/distance_messages.hpp>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <geometric_shapes/shapes.h>
#include <morphit_moveit/pairs.hpp>

namespace morphit_moveit
{
namespace
{
namespace cd = collision_detection;
using morphit_interfaces::msg::BodyDistance;
using morphit_interfaces::msg::DistanceShape;
using morphit_interfaces::msg::WorldObject;

// Greater distances than this are none that the service is asked for; the request's maximum is not finite in sums.
constexpr double NO_THRESHOLD = 1.0e9;

geometry_msgs::msg::Pose poseMessage(const Eigen::Isometry3d& pose)
{
  const Eigen::Quaterniond rotation(pose.linear());
  geometry_msgs::msg::Pose message;
  message.position.x = pose.translation().x();
  message.position.y = pose.translation().y();
  message.position.z = pose.translation().z();
  message.orientation.x = rotation.x();
  message.orientation.y = rotation.y();
  message.orientation.z = rotation.z();
  message.orientation.w = rotation.w();
  return message;
}

bool fillShape(const shapes::Shape& shape, DistanceShape& message)
{
  switch (shape.type)
  {
    case shapes::SPHERE:
      message.type = DistanceShape::SPHERE;
      message.dimensions = { static_cast<const shapes::Sphere&>(shape).radius };
      return true;
    case shapes::BOX:
    {
      const auto& box = static_cast<const shapes::Box&>(shape);
      message.type = DistanceShape::BOX;
      message.dimensions = { box.size[0], box.size[1], box.size[2] };
      return true;
    }
    case shapes::CYLINDER:
    {
      const auto& cylinder = static_cast<const shapes::Cylinder&>(shape);
      message.type = DistanceShape::CYLINDER;
      message.dimensions = { cylinder.length, cylinder.radius };
      return true;
    }
    case shapes::MESH:
    {
      const auto& mesh = static_cast<const shapes::Mesh&>(shape);
      message.type = DistanceShape::CONVEX_MESH;
      message.vertices.resize(mesh.vertex_count);
      for (unsigned int i = 0; i < mesh.vertex_count; ++i)
      {
        message.vertices[i].x = mesh.vertices[3 * i];
        message.vertices[i].y = mesh.vertices[3 * i + 1];
        message.vertices[i].z = mesh.vertices[3 * i + 2];
      }
      return true;
    }
    default:
      return false;
  }
}

bool fillObject(const std::string& id, const std::vector<shapes::ShapeConstPtr>& shapes,
                const EigenSTL::vector_Isometry3d& shape_poses, const Eigen::Isometry3d& pose, WorldObject& object,
                std::string& reason)
{
  object.id = id;
  object.pose = poseMessage(pose);
  for (std::size_t i = 0; i < shapes.size(); ++i)
  {
    DistanceShape shape;
    if (!fillShape(*shapes[i], shape))
    {
      reason = "object '" + id + "' has a shape that is no sphere, box, cylinder or mesh";
      return false;
    }
    shape.pose = poseMessage(shape_poses[i]);
    object.shapes.push_back(std::move(shape));
  }
  return true;
}

Eigen::Vector3d toModelFrame(const Eigen::Isometry3d& root, const geometry_msgs::msg::Point& point)
{
  return root * Eigen::Vector3d(point.x, point.y, point.z);
}

cd::DistanceResultsData resultData(const BodyDistance& body, const Eigen::Isometry3d& root, bool nearest_points)
{
  cd::DistanceResultsData data;
  data.distance = body.distance;
  for (std::size_t i = 0; i < 2; ++i)
  {
    data.link_names[i] = body.link_names[i];
    // The numbers of the message are those of MoveIt.
    data.body_types[i] = static_cast<cd::BodyType>(body.body_types[i]);
    if (nearest_points)
      data.nearest_points[i] = toModelFrame(root, body.nearest_points[i]);
  }
  data.normal = root.linear() * Eigen::Vector3d(body.normal.x, body.normal.y, body.normal.z);
  return data;
}
}  // namespace

bool fillRequest(const cd::DistanceRequest& req, const moveit::core::RobotState& state, const cd::World& world,
                 Scope scope, RobotDistance::Request& request, std::string& reason)
{
  const auto& model = *state.getRobotModel();
  sensor_msgs::msg::JointState joints;
  joints.name = model.getVariableNames();
  joints.position.assign(state.getVariablePositions(), state.getVariablePositions() + state.getVariableCount());
  request.joint_states = { joints };

  std::vector<BodyName> robot, others;
  for (const moveit::core::LinkModel* link : model.getLinkModelsWithCollisionGeometry())
    robot.push_back({ link->getName(), link, nullptr });
  std::vector<const moveit::core::AttachedBody*> attached;
  state.getAttachedBodies(attached);
  for (const moveit::core::AttachedBody* body : attached)
  {
    // Spheres that robot_spheres has sent for the link: its superovoids stand for it, and the service knows it by that name.
    if (body->getName() == body->getAttachedLinkName())
      continue;
    robot.push_back({ body->getName(), body->getAttachedLink(), body });
    WorldObject object;
    if (!fillObject(body->getName(), body->getShapes(), body->getShapePoses(), body->getPose(), object, reason))
      return false;
    object.attached_to = body->getAttachedLinkName();
    object.touch_links.assign(body->getTouchLinks().begin(), body->getTouchLinks().end());
    request.objects.push_back(std::move(object));
  }
  if (scope == Scope::WORLD)
  {
    const Eigen::Isometry3d model_to_root = state.getGlobalLinkTransform(model.getRootLink()).inverse();
    for (const auto& item : world)
    {
      const cd::World::Object& entry = *item.second;
      WorldObject object;
      if (!fillObject(entry.id_, entry.shapes_, entry.shape_poses_, model_to_root * entry.pose_, object, reason))
        return false;
      if (object.shapes.empty())
        continue;
      others.push_back({ entry.id_, nullptr, nullptr });
      request.objects.push_back(std::move(object));
    }
  }
  for (std::size_t i = 0; i < robot.size(); ++i)
  {
    const std::vector<BodyName>& partners = scope == Scope::SELF ? robot : others;
    for (std::size_t j = scope == Scope::SELF ? i + 1 : 0; j < partners.size(); ++j)
    {
      if (!isAsked(robot[i], partners[j], req))
        continue;
      request.pair_links_1.push_back(robot[i].name);
      request.pair_links_2.push_back(partners[j].name);
    }
  }
  // The pairs above are all of them, as the matrix of the request says, which need not be that of the SRDF.
  request.ignore_semantics = true;
  request.world = RobotDistance::Request::WORLD_REPLACE;
  request.self_distance = scope == Scope::SELF;
  request.world_distance = scope == Scope::WORLD;
  // The numbers of the request types are those of MoveIt.
  request.type = static_cast<std::uint8_t>(req.type);
  request.max_contacts_per_body = static_cast<std::uint32_t>(std::max<std::size_t>(req.max_contacts_per_body, 1));
  request.distance_threshold = std::min(req.distance_threshold, NO_THRESHOLD);
  request.enable_nearest_points = req.enable_nearest_points;
  request.enable_signed_distance = req.enable_signed_distance;
  return true;
}

void addToResult(const RobotDistance::Response& response, const cd::DistanceRequest& req,
                 const moveit::core::RobotState& state, cd::DistanceResult& res)
{
  const Eigen::Isometry3d& root = state.getGlobalLinkTransform(state.getRobotModel()->getRootLink());
  const auto& distances = response.states.front();
  res.collision = res.collision || distances.collision;
  if (!distances.minimum_distance.link_names[0].empty() &&
      distances.minimum_distance.distance < res.minimum_distance.distance)
    res.minimum_distance = resultData(distances.minimum_distance, root, req.enable_nearest_points);
  if (req.type == cd::DistanceRequestType::GLOBAL)
    return;
  for (const BodyDistance& body : distances.distances)
  {
    const auto pair = std::minmax(body.link_names[0], body.link_names[1]);
    res.distances[std::pair<std::string, std::string>(pair.first, pair.second)].push_back(
        resultData(body, root, req.enable_nearest_points));
  }
}
}  // namespace morphit_moveit
