// The geometry of morphit_moveit for ctypes: what of it needs no MoveIt.
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include <morphit_moveit/placed_spheres.hpp>
#include <morphit_moveit/placed_superovoids.hpp>
#include <morphit_moveit/plain_shapes.hpp>
#include <morphit_moveit/solids.hpp>
#include <morphit_moveit/sphere_cover.hpp>

using namespace morphit_moveit;

namespace
{
using Point = Eigen::Map<const Eigen::Vector3d>;

Eigen::Isometry3d poseOf(const double* rows)
{
  Eigen::Isometry3d pose;
  pose.matrix() = Eigen::Map<const Eigen::Matrix<double, 4, 4, Eigen::RowMajor>>(rows);
  return pose;
}

Spheres spheresOf(const double* values, std::size_t count)
{
  Spheres spheres;
  for (std::size_t i = 0; i < count; ++i)
    spheres.push_back({ Point(values + 5 * i), values[5 * i + 3], values[5 * i + 4] });
  return spheres;
}

/** A body at a place, with room for its rows. */
struct Placed
{
  Placed(const double* values, std::size_t count, const double* at, double growth, bool trust)
    : body(spheresOf(values, count)), pose(poseOf(at)), rows(4 * count), spheres(body, pose, growth, trust, rows.data())
  {
  }

  BodySpheres body;
  Eigen::Isometry3d pose;
  std::vector<double> rows;
  PlacedSpheres spheres;
};

void write(const Meeting& meeting, double* out)
{
  out[0] = meeting.distance;
  Eigen::Map<Eigen::Vector3d>(out + 1) = meeting.first;
  Eigen::Map<Eigen::Vector3d>(out + 4) = meeting.second;
  Eigen::Map<Eigen::Vector3d>(out + 7) = meeting.normal;
}
/** Superovoids of a body: rows of seven numbers of the shape, then the sixteen of its pose. */
SuperovoidPieces piecesOf(const double* rows, std::size_t count)
{
  SuperovoidPieces pieces;
  for (; count > 0; --count, rows += 23)
    pieces.emplace_back(std::make_shared<Superovoid>(Point(rows), Eigen::Vector2d(rows[3], rows[4]),
                                                     Eigen::Vector2d(rows[5], rows[6])),
                        poseOf(rows + 7));
  return pieces;
}
}  // namespace

extern "C" {
Solid* solid_new(int kind, const double* sizes)
{
  switch (kind)
  {
    case 0:
      return new Ball(sizes[0]);
    case 1:
      return new Cuboid(Point(sizes));
    case 2:
      return new Revolved(Revolved::cylinder(sizes[0], sizes[1]));
    case 3:
      return new Revolved(Revolved::cone(sizes[0], sizes[1]));
    default:
      return new Plane(Point(sizes), sizes[3]);
  }
}

Solid* mesh_new(const double* vertices, std::size_t vertex_count, const std::uint32_t* triangles,
                std::size_t triangle_count, char* problem)
{
  TriangleMesh::Vertices points;
  for (std::size_t i = 0; i < vertex_count; ++i)
    points.push_back(Point(vertices + 3 * i));
  TriangleMesh::Triangles corners(triangle_count);
  for (std::size_t i = 0; i < triangle_count; ++i)
    corners[i] = { triangles[3 * i], triangles[3 * i + 1], triangles[3 * i + 2] };
  try
  {
    return new TriangleMesh(points, corners);
  }
  catch (const std::invalid_argument& error)
  {
    std::strncpy(problem, error.what(), 199);
    return nullptr;
  }
}

void solid_delete(Solid* solid)
{
  delete solid;
}

/** Of each point distance, nearest point and normal (7 numbers), and what the bounded questions answer (3 numbers). */
void ask(const Solid* solid, const double* points, std::size_t count, double beyond, double* out)
{
  for (std::size_t i = 0; i < count; ++i, out += 10)
  {
    const Point point(points + 3 * i);
    const Closest closest = solid->closest(point);
    out[0] = closest.distance;
    Eigen::Map<Eigen::Vector3d>(out + 1) = closest.point;
    Eigen::Map<Eigen::Vector3d>(out + 4) = closest.normal;
    out[7] = solid->distance(point, beyond);
    out[8] = solid->touches(point, beyond);
    out[9] = solid->contains(point);
  }
}

double needed_growth(const double* spheres, std::size_t count, Solid* solid, const double* pose)
{
  const SolidConstPtr shared(solid, [](const Solid*) {});
  return neededGrowth(spheresOf(spheres, count), { shared, poseOf(pose) });
}

std::size_t plain_cover(Solid* solid, const double* pose, std::size_t count, double* out)
{
  const SolidConstPtr shared(solid, [](const Solid*) {});
  Spheres spheres = plainCover({ shared, poseOf(pose) }, count);
  measureInner(spheres, { shared, poseOf(pose) });
  for (std::size_t i = 0; i < spheres.size(); ++i)
  {
    Eigen::Map<Eigen::Vector3d>(out + 5 * i) = spheres[i].center;
    out[5 * i + 3] = spheres[i].radius;
    out[5 * i + 4] = spheres[i].inner;
  }
  return spheres.size();
}

/** Verdict; in `out` the nearest meeting below `limit`, in `found` whether there is one and how many meetings touch. */
int body_and_solid(const double* spheres, std::size_t count, const double* at, double growth, int trust, Solid* solid,
                   const double* pose, int decide, double limit, double* out, int* found)
{
  const Placed body(spheres, count, at, growth, trust != 0);
  const PlacedSolid placed(SolidConstPtr(solid, [](const Solid*) {}), poseOf(pose));
  Meeting meeting;
  found[0] = nearest(body.spheres, placed, limit, meeting);
  if (found[0])
    write(meeting, out);
  found[1] = static_cast<int>(meetings(body.spheres, placed, count).size());
  return static_cast<int>(verdict(body.spheres, placed, decide != 0));
}

int body_and_body(const double* a, std::size_t count_a, const double* at_a, const double* b, std::size_t count_b,
                  const double* at_b, double growth, int trust, int matters, double limit, double* out, int* found)
{
  const Placed first(a, count_a, at_a, growth, trust != 0), second(b, count_b, at_b, growth, trust != 0);
  Meeting meeting;
  found[0] = nearest(first.spheres, second.spheres, limit, meeting);
  if (found[0])
    write(meeting, out);
  found[1] = static_cast<int>(meetings(first.spheres, second.spheres, count_a * count_b).size());
  if (!overlap(first.spheres, second.spheres))
    return 0;
  return static_cast<int>(verdict(first.spheres, second.spheres, [matters] { return matters != 0; }));
}

/** Write at most `wanted` of the deepest meetings; how many there are of them. */
std::size_t deepest_in_solid(const double* spheres, std::size_t count, const double* at, double growth, Solid* solid,
                             const double* pose, std::size_t wanted, double* out)
{
  const Placed body(spheres, count, at, growth, true);
  const std::vector<Meeting> found =
      meetings(body.spheres, PlacedSolid(SolidConstPtr(solid, [](const Solid*) {}), poseOf(pose)), wanted);
  for (std::size_t i = 0; i < found.size(); ++i)
    write(found[i], out + 10 * i);
  return found.size();
}

std::size_t deepest_in_body(const double* a, std::size_t count_a, const double* at_a, const double* b,
                            std::size_t count_b, const double* at_b, double growth, std::size_t wanted, double* out)
{
  const Placed first(a, count_a, at_a, growth, true), second(b, count_b, at_b, growth, true);
  const std::vector<Meeting> found = meetings(first.spheres, second.spheres, wanted);
  for (std::size_t i = 0; i < found.size(); ++i)
    write(found[i], out + 10 * i);
  return found.size();
}

int body_touches(const double* spheres, std::size_t count, const double* at, double growth, const double* center,
                 double radius)
{
  return touches(Placed(spheres, count, at, growth, true).spheres, Point(center), radius);
}

/** Support points of a superovoid of seven numbers, and whether it contains given points; what is wrong with it, if it is. */
void superovoid_ask(const double* numbers, const double* directions, const double* points, std::size_t count, double* out,
                    char* problem)
{
  try
  {
    const Superovoid shape(Point(numbers), { numbers[3], numbers[4] }, { numbers[5], numbers[6] });
    for (std::size_t i = 0; i < count; ++i, out += 4)
    {
      Eigen::Map<Eigen::Vector3d>(out + 0) = shape.support(Point(directions + 3 * i));
      out[3] = shape.contains(Point(points + 3 * i));
    }
  }
  catch (const std::invalid_argument& error)
  {
    std::strncpy(problem, error.what(), 199);
  }
}

double superovoids_growth(const double* rows, std::size_t count, Solid* solid, const double* pose)
{
  return neededGrowth(piecesOf(rows, count), { SolidConstPtr(solid, [](const Solid*) {}), poseOf(pose) });
}

/** Whether a body and a solid are nearer than `limit`; then their meeting, and the bound by the box around the solid. */
int superovoids_and_solid(const double* rows, std::size_t count, const double* at, double growth, Solid* solid,
                          const double* pose, double limit, double* out)
{
  const SuperovoidPieces pieces = piecesOf(rows, count);
  const PlacedSuperovoids body(pieces, poseOf(at), growth);
  const PlacedSolid placed(SolidConstPtr(solid, [](const Solid*) {}), poseOf(pose));
  Meeting meeting;
  out[10] = body.bound(placed.box);
  if (!nearest(body, placed, limit, meeting))
    return 0;
  write(meeting, out);
  return 1;
}

int superovoids_and_superovoids(const double* a, std::size_t count_a, const double* at_a, const double* b,
                                std::size_t count_b, const double* at_b, double growth, double limit, double* out)
{
  const SuperovoidPieces first = piecesOf(a, count_a), second = piecesOf(b, count_b);
  const PlacedSuperovoids one(first, poseOf(at_a), growth), other(second, poseOf(at_b), growth);
  Meeting meeting;
  out[10] = one.bound(other);
  if (!nearest(one, other, limit, meeting))
    return 0;
  write(meeting, out);
  return 1;
}

std::size_t cone_corners(double radius, double length, double* out)
{
  const std::vector<Eigen::Vector3d> corners = coneCorners(radius, length);
  for (std::size_t i = 0; i < corners.size(); ++i)
    Eigen::Map<Eigen::Vector3d>(out + 3 * i) = corners[i];
  return corners.size();
}

int half_space_pose(const double* plane, double* out)
{
  try
  {
    Eigen::Map<Eigen::Matrix<double, 4, 4, Eigen::RowMajor>> rows(out);
    rows = halfSpacePose(Point(plane), plane[3]).matrix();
    return 1;
  }
  catch (const std::invalid_argument&)
  {
    return 0;
  }
}

int mesh_is_convex(const Solid* solid)
{
  return isConvex(dynamic_cast<const TriangleMesh&>(*solid));
}

/** Rows of two corners of the boxes; how many there are. */
std::size_t boxes_of_mesh(const Solid* solid, std::size_t most, double finest, double* out)
{
  const Boxes boxes = boxesOf(dynamic_cast<const TriangleMesh&>(*solid), most, finest);
  for (std::size_t i = 0; i < boxes.boxes.size(); ++i)
  {
    Eigen::Map<Eigen::Vector3d>(out + 6 * i) = boxes[i].min();
    Eigen::Map<Eigen::Vector3d>(out + 6 * i + 3) = boxes[i].max();
  }
  return boxes.boxes.size();
}
}
