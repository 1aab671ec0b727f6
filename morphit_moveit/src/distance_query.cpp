#include <morphit_moveit/distance_query.hpp>

#include <algorithm>
#include <limits>

namespace morphit_moveit
{
namespace cd = collision_detection;

void DistanceQuery::run()
{
  std::sort(pairs_.begin(), pairs_.end(), [](const Pair& a, const Pair& b) { return a.bound < b.bound; });
  for (const Pair& pair : pairs_)
  {
    // Depths of FCL know no bound: where spheres overlap it is asked.
    if (data_.done || (pair.bound > 0.0 && pair.bound >= limit()))
      return;
    pair.measure();
  }
}

/** What is further away is not of interest [m]. */
double DistanceQuery::limit() const
{
  return req_.type == cd::DistanceRequestType::GLOBAL ? res_.minimum_distance.distance : req_.distance_threshold;
}

void DistanceQuery::measure(const PlacedLink& link, const WorldShape& shape)
{
  measure(link.name(), { shape.object }, cd::BodyTypes::WORLD_OBJECT,
          [&](double limit, Meeting& meeting) { return nearest(link, shape, limit, meeting); });
}

void DistanceQuery::measure(const PlacedLink& a, const PlacedLink& b, bool confirm)
{
  Meeting meeting;
  if (!nearest(a, b, limit(), meeting))
    return;
  if (confirm && meeting.distance <= 0.0)
    measureByFcl(*a.part->link, *b.part->link);
  else
    store(a.name(), b.name(), cd::BodyTypes::ROBOT_LINK, meeting);
}

void DistanceQuery::measure(const BodyName& a, const BodyName& b, cd::BodyType type_b,
                            const std::function<bool(double, Meeting&)>& find)
{
  Meeting meeting;
  if (find(limit(), meeting))
    store(a, b, type_b, meeting);
}

void DistanceQuery::measureByFcl(fcl::CollisionObjectd& a, fcl::CollisionObjectd& b)
{
  double unused = std::numeric_limits<double>::max();
  cd::distanceCallback(&a, &b, &data_, unused);
}

void DistanceQuery::measureByFcl(const moveit::core::LinkModel& link, fcl::CollisionObjectd& other)
{
  objects_.visitLink(link, state_, [&](fcl::CollisionObjectd& object) {
    measureByFcl(object, other);
    return data_.done;
  });
}

void DistanceQuery::measureByFcl(const moveit::core::LinkModel& a, const moveit::core::LinkModel& b)
{
  objects_.visitLink(a, state_, [&](fcl::CollisionObjectd& object) {
    measureByFcl(b, object);
    return data_.done;
  });
}

void DistanceQuery::measureByFcl(const moveit::core::LinkModel& link, const WorldShape& shape)
{
  objects_.visitShape(shape, [&](fcl::CollisionObjectd& object) {
    measureByFcl(link, object);
    return data_.done;
  });
}

void DistanceQuery::measureByFcl(CarriedShape& carried, const WorldShape& shape)
{
  objects_.visitShape(shape, [&](fcl::CollisionObjectd& object) {
    measureByFcl(carried.object, object);
    return data_.done;
  });
}

void DistanceQuery::store(const BodyName& a, const BodyName& b, cd::BodyType type_b, const Meeting& meeting)
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
}  // namespace morphit_moveit
