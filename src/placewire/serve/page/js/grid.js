// The grid of longitudes and latitudes: lines a hand's breadth apart at every zoom, so that a plain sea has a scale.

const STEPS = [30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001];
const APART_PX = 110;

/** Lines of the grid for what is seen, as GeoJSON. */
export function gridOf(bounds, zoom) {
  const pixelsADegree = (512 * 2 ** zoom) / 360;
  const step = STEPS.findLast((size) => size * pixelsADegree >= APART_PX) ?? STEPS[0];
  const [west, south, east, north] = bounds;
  const [low, high] = [Math.max(-85, south - step), Math.min(85, north + step)];
  const lines = [];
  for (let n = Math.floor(west / step); n <= Math.ceil(east / step); n += 1) {
    lines.push([[n * step, low], [n * step, high]]);
  }
  for (let n = Math.ceil(low / step); n * step <= high; n += 1) {
    lines.push([[west - step, n * step], [east + step, n * step]]);
  }
  return { type: "Feature", properties: {}, geometry: { type: "MultiLineString", coordinates: lines } };
}
