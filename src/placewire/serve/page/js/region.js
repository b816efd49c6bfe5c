// Regions as the service takes them, as shapes on the map, and in words.
import { sayDistance } from "./words.js";

const EARTH_M = 6_371_008.8;
const RAD = Math.PI / 180;

/** @typedef {{box:number[]}|{circle:{lon:number,lat:number,radius_m:number}}|{polygon:number[][][]}} Region */

export function wrapLon(lon) {
  return lon >= -180 && lon <= 180 ? lon : ((((lon + 180) % 360) + 360) % 360) - 180;
}

function clampLat(lat) {
  return Math.min(90, Math.max(-90, lat));
}

/** Degrees as they are sent and shown: a ten-thousandth is about eleven metres. */
export function roundDegrees(degrees, digits = 4) {
  return Number(degrees.toFixed(digits));
}

export function distance(lon1, lat1, lon2, lat2) {
  const dLat = (lat2 - lat1) * RAD;
  const dLon = (lon2 - lon1) * RAD;
  const a = Math.sin(dLat / 2) ** 2 + Math.cos(lat1 * RAD) * Math.cos(lat2 * RAD) * Math.sin(dLon / 2) ** 2;
  return 2 * EARTH_M * Math.asin(Math.min(1, Math.sqrt(a)));
}

/** A box from two corners of the map, whose longitudes may run past 180. */
export function boxOf(a, b) {
  const [west, east] = [Math.min(a[0], b[0]), Math.max(a[0], b[0])];
  const [south, north] = [Math.min(a[1], b[1]), Math.max(a[1], b[1])];
  const sides = east - west >= 360 ? [-180, 180] : [wrapLon(west), wrapLon(east)];
  return { box: [sides[0], clampLat(south), sides[1], clampLat(north)].map((d) => roundDegrees(d)) };
}

export function circleOf(centre, edge) {
  const radius_m = Math.max(1, Math.round(distance(centre[0], centre[1], edge[0], edge[1])));
  return { circle: { lon: roundDegrees(wrapLon(centre[0])), lat: roundDegrees(clampLat(centre[1])), radius_m } };
}

/** A polygon from corners of the map. Regions are planar, so one that leaves ±180 is cut off there. */
export function polygonOf(corners) {
  const middle = corners.reduce((sum, [lon]) => sum + lon, 0) / corners.length;
  const shift = Math.round((wrapLon(middle) - middle) / 360) * 360;
  const ring = corners.map(([lon, lat]) => [
    roundDegrees(Math.min(180, Math.max(-180, lon + shift))),
    roundDegrees(clampLat(lat)),
  ]);
  return { polygon: [[...ring, [...ring[0]]]] };
}

/** The circle as a ring for the map; longitudes run on past 180 instead of jumping. */
export function circleRing({ lon, lat, radius_m }, steps = 96) {
  const ring = [];
  const angle = Math.min(radius_m / EARTH_M, Math.PI);
  for (let step = 0; step <= steps; step += 1) {
    const bearing = (step / steps) * 2 * Math.PI;
    const lat2 = Math.asin(
      Math.sin(lat * RAD) * Math.cos(angle) + Math.cos(lat * RAD) * Math.sin(angle) * Math.cos(bearing),
    );
    const lon2 = Math.atan2(
      Math.sin(bearing) * Math.sin(angle) * Math.cos(lat * RAD),
      Math.cos(angle) - Math.sin(lat * RAD) * Math.sin(lat2),
    );
    ring.push([lon + lon2 / RAD, lat2 / RAD]);
  }
  return ring;
}

/** @param {Region} region */
export function geometryOf(region) {
  if (region.box) {
    const [west, south, east, north] = region.box;
    const right = west > east ? east + 360 : east;
    return {
      type: "Polygon",
      coordinates: [[[west, south], [right, south], [right, north], [west, north], [west, south]]],
    };
  }
  if (region.circle) return { type: "Polygon", coordinates: [circleRing(region.circle)] };
  return { type: "Polygon", coordinates: region.polygon };
}

/** West, south, east, north of a geometry, or of a subscription's point. */
export function boundsOf(geometry) {
  const points = geometry.type === "Point" ? [geometry.coordinates] : geometry.coordinates.flat();
  const lons = points.map(([lon]) => lon);
  const lats = points.map(([, lat]) => lat);
  return [Math.min(...lons), Math.min(...lats), Math.max(...lons), Math.max(...lats)];
}

/** The point from which the distance of a match is measured. */
export function centreOf(region) {
  if (region.circle) return [region.circle.lon, region.circle.lat];
  const [west, south, east, north] = boundsOf(geometryOf(region));
  return [wrapLon((west + east) / 2), (south + north) / 2];
}

/** @param {Region|undefined} region */
export function sayRegion(region) {
  if (!region) return "everywhere";
  if (region.circle) return `within ${sayDistance(region.circle.radius_m)} of ${sayPoint(region.circle.lon, region.circle.lat)}`;
  if (region.box) {
    const [west, south, east, north] = region.box;
    const middle = (south + north) / 2;
    const wide = ((east - west + 360) % 360 || (east === west ? 0 : 360)) * RAD * EARTH_M * Math.cos(middle * RAD);
    const high = (north - south) * RAD * EARTH_M;
    return `in a box of ${sayDistance(wide)} by ${sayDistance(high)}`;
  }
  const corners = region.polygon[0].length - 1;
  return `in a polygon with ${corners} corners`;
}

export function sayPoint(lon, lat) {
  const side = (degrees, plus, minus) => `${Math.abs(degrees).toFixed(2)}° ${degrees >= 0 ? plus : minus}`;
  return `${side(lat, "N", "S")} ${side(lon, "E", "W")}`;
}
