// Signed distances of points to the shapes of a world: what spheres are held against.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include <Eigen/Geometry>

#include <morphit_moveit/box_tree.hpp>
#include <morphit_moveit/convex.hpp>

namespace morphit_moveit
{
/** Where a surface is nearest to a point. */
struct Closest
{
  double distance;         // [m], negative inside
  Eigen::Vector3d point;   // of the surface
  Eigen::Vector3d normal;  // unit, outwards: the gradient of the distance at the point that was asked for
};

/** A shape in its own frame. Immutable: it may be asked from any thread. */
class Solid
{
public:
  virtual ~Solid() = default;

  virtual Eigen::AlignedBox3d bounds() const = 0;

  virtual Closest closest(const Eigen::Vector3d& point) const = 0;

  /** The signed distance [m] if it is less than `beyond`, and any number that is no less otherwise.
   *
   * Of a mesh, a point deeper inside than `beyond` counts as one beyond it: only `contains` tells.
   */
  virtual double distance(const Eigen::Vector3d& point, double beyond) const = 0;

  /** Whether a sphere is less than its radius away from the surface, or, of a solid that is no mesh, inside. */
  virtual bool touches(const Eigen::Vector3d& center, double radius) const
  {
    return distance(center, radius) < radius;
  }

  virtual bool contains(const Eigen::Vector3d& point) const
  {
    return distance(point, 0.0) < 0.0;
  }

  /** Whether `distance` and `touches` may miss that a point is inside. */
  virtual bool isSurface() const
  {
    return false;
  }

  /** A convex part, at an offset [m], with a ball that is swept over it. */
  using VisitPart = std::function<void(const Convex& part, const Eigen::Vector3d& offset, double margin)>;

  /** Call visit with each convex part, of a surface each triangle, that is less than `reach` [m] from a point, the nearer
   * ones first where that costs little; visit may lower `reach`. */
  virtual void parts(const Eigen::Vector3d& point, const double& reach, const VisitPart& visit) const = 0;

  /** Whether the convex parts are all of it. */
  virtual bool hasParts() const
  {
    return true;
  }
};

using SolidConstPtr = std::shared_ptr<const Solid>;

/** Around the origin. */
class Ball : public Solid
{
public:
  explicit Ball(double radius) : radius_(radius)
  {
  }
  Eigen::AlignedBox3d bounds() const override;
  Closest closest(const Eigen::Vector3d& point) const override;
  double distance(const Eigen::Vector3d& point, double) const override
  {
    return point.norm() - radius_;
  }
  void parts(const Eigen::Vector3d& point, const double& reach, const VisitPart& visit) const override;
  double radius() const
  {
    return radius_;
  }

private:
  double radius_;
};

/** Centred, with edges along the axes. */
class Cuboid : public Solid, public Convex
{
public:
  explicit Cuboid(const Eigen::Vector3d& sizes) : half_(0.5 * sizes)
  {
  }
  Eigen::AlignedBox3d bounds() const override;
  Closest closest(const Eigen::Vector3d& point) const override;
  double distance(const Eigen::Vector3d& point, double) const override;
  void parts(const Eigen::Vector3d& point, const double& reach, const VisitPart& visit) const override;
  Eigen::Vector3d support(const Eigen::Vector3d& direction) const override;

private:
  Eigen::Vector3d half_;
};

/** A convex outline, turned about z: cylinders and cones. */
class Revolved : public Solid, public Convex
{
public:
  /** Along z from −length/2 to length/2. */
  static Revolved cylinder(double radius, double length);
  /** The same, its tip at +length/2. */
  static Revolved cone(double radius, double length);

  Eigen::AlignedBox3d bounds() const override;
  Closest closest(const Eigen::Vector3d& point) const override;
  double distance(const Eigen::Vector3d& point, double) const override;
  void parts(const Eigen::Vector3d& point, const double& reach, const VisitPart& visit) const override;
  Eigen::Vector3d support(const Eigen::Vector3d& direction) const override;

private:
  using Outline = std::vector<Eigen::Vector2d>;  // (radius, z), from the axis above to the axis below

  struct Nearest
  {
    double distance;
    Eigen::Vector2d point;
    Eigen::Vector2d normal;
  };

  explicit Revolved(Outline outline) : outline_(std::move(outline))
  {
  }
  Nearest nearest(const Eigen::Vector2d& at) const;

  Outline outline_;
};

/** Both sides of the plane n·p + d = 0, as thin as FCL's: nothing is inside. */
class Plane : public Solid
{
public:
  Plane(const Eigen::Vector3d& normal, double offset);
  Eigen::AlignedBox3d bounds() const override;
  Closest closest(const Eigen::Vector3d& point) const override;
  double distance(const Eigen::Vector3d& point, double) const override;
  void parts(const Eigen::Vector3d&, const double&, const VisitPart&) const override
  {
  }
  bool hasParts() const override
  {
    return false;
  }

private:
  Eigen::Vector3d normal_;
  double offset_;
};

/** Triangles. A closed mesh with faces outwards has an inside (signs by pseudonormals: Bærentzen and Aanæs, 2005); of any
 * other mesh only the surface counts, and distances are positive. */
class TriangleMesh : public Solid
{
public:
  using Vertices = std::vector<Eigen::Vector3d>;
  using Triangles = std::vector<std::array<std::uint32_t, 3>>;

  /** Triangles without area are left out.
   *
   * @throw std::invalid_argument if nothing remains, a vertex is not finite, or an index has no vertex.
   */
  TriangleMesh(const Vertices& vertices, const Triangles& triangles);

  Eigen::AlignedBox3d bounds() const override
  {
    return bounds_;
  }
  Closest closest(const Eigen::Vector3d& point) const override;
  double distance(const Eigen::Vector3d& point, double beyond) const override;
  bool touches(const Eigen::Vector3d& center, double radius) const override;
  bool contains(const Eigen::Vector3d& point) const override;
  void parts(const Eigen::Vector3d& point, const double& reach, const VisitPart& visit) const override;
  bool isSurface() const override
  {
    return true;
  }
  bool isClosed() const
  {
    return closed_;
  }

  /** Corners of the triangles. */
  const std::vector<std::array<Eigen::Vector3d, 3>>& faces() const
  {
    return faces_;
  }

private:
  struct Hit
  {
    std::uint32_t face;
    int feature;  // 0 to 2: corner; 3 to 5: edge from corner feature − 3; 6: within
    Eigen::Vector3d point;
  };

  Hit nearest(const Eigen::Vector3d& point, double& squared) const;
  double sign(const Eigen::Vector3d& point, const Hit& hit) const;

  std::vector<std::array<Eigen::Vector3d, 3>> faces_;
  std::vector<std::array<Eigen::Vector3d, 7>> normals_;  // of each feature
  bool closed_ = false;
  Eigen::AlignedBox3d bounds_;
  BoxTree tree_;
};
}  // namespace morphit_moveit
