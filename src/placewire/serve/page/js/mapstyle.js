// How the ground looks: outlines, a grid and names, in the colours of the theme. No tiles, no fonts from anywhere.
import { theme } from "./theme.js";

const PAGE = new URL("..", import.meta.url);
const file = (path) => new URL(path, PAGE).href;
const empty = () => ({ type: "geojson", data: { type: "FeatureCollection", features: [] } });

export const SOURCES = ["grid", "leaves", "leaf-names", "regions", "draft", "objects", "matches", "standing"];

const FONT = ["system-ui", "sans-serif"];

function groundLayers() {
  const c = (name) => theme.colour(name);
  return [
    { id: "sea", type: "background", paint: { "background-color": c("sea") } },
    { id: "land", type: "fill", source: "land", paint: { "fill-color": c("land"), "fill-antialias": true } },
    { id: "grid", type: "line", source: "grid", paint: { "line-color": c("grid"), "line-width": 0.6 } },
    { id: "borders", type: "line", source: "borders", paint: {
      "line-color": c("border"), "line-width": ["interpolate", ["linear"], ["zoom"], 1, 0.5, 6, 1] } },
    { id: "coast", type: "line", source: "land", paint: {
      "line-color": c("coast"), "line-width": ["interpolate", ["linear"], ["zoom"], 1, 0.6, 6, 1.2] } },
  ];
}

function planLayers() {
  return [
    { id: "leaves", type: "fill", source: "leaves", layout: { visibility: "none" }, paint: {
      "fill-color": ["get", "colour"], "fill-opacity": ["get", "shade"] } },
    { id: "leaf-lines", type: "line", source: "leaves", layout: { visibility: "none" }, paint: {
      "line-color": ["get", "colour"], "line-width": 1.2, "line-opacity": 0.75 } },
  ];
}

function nameLayers() {
  const c = (name) => theme.colour(name);
  const paint = (colour) => ({ "text-color": colour, "text-halo-color": c("land"), "text-halo-width": 1.4 });
  return [
    { id: "cities", type: "symbol", source: "places", filter: ["!", ["has", "spot"]],
      layout: { "text-field": ["get", "name"], "text-font": FONT, "text-padding": 6,
        "text-size": ["interpolate", ["linear"], ["zoom"], 1, 10, 8, 14],
        "symbol-sort-key": ["-", 0, ["get", "millions"]], "text-variable-anchor": ["top", "bottom", "left", "right"],
        "text-radial-offset": 0.4 },
      paint: paint(c("name")) },
    { id: "spots", type: "symbol", source: "places", filter: ["has", "spot"], minzoom: 8.5,
      layout: { "text-field": ["get", "name"], "text-font": FONT, "text-size": 11, "text-padding": 4 },
      paint: paint(c("name-minor")) },
    { id: "leaf-names", type: "symbol", source: "leaf-names", layout: { visibility: "none", "text-field": ["get", "name"],
      "text-font": FONT, "text-size": 11, "text-padding": 2 }, paint: paint(c("text")) },
  ];
}

function liveLayers() {
  const c = (name) => theme.colour(name);
  const byZoom = (low, high) => ["interpolate", ["linear"], ["zoom"], 1, low, 10, high];
  return [
    { id: "regions", type: "fill", source: "regions", filter: ["==", ["geometry-type"], "Polygon"], paint: {
      "fill-color": ["get", "colour"], "fill-opacity": ["case", ["get", "selected"], 0.16, 0.07] } },
    { id: "region-lines", type: "line", source: "regions", filter: ["==", ["geometry-type"], "Polygon"], paint: {
      "line-color": ["get", "colour"], "line-width": ["case", ["get", "selected"], 2.2, 1.3] } },
    { id: "draft", type: "fill", source: "draft", filter: ["==", ["geometry-type"], "Polygon"], paint: {
      "fill-color": c("accent"), "fill-opacity": 0.12 } },
    { id: "draft-lines", type: "line", source: "draft", paint: {
      "line-color": c("accent"), "line-width": 2, "line-dasharray": [2, 1.5] } },
    { id: "objects", type: "circle", source: "objects", paint: {
      "circle-color": c("object"), "circle-opacity": ["get", "o"], "circle-radius": byZoom(1.8, 4.2) } },
    { id: "match-pulse", type: "circle", source: "matches", filter: ["<", ["get", "age"], 1], paint: {
      "circle-color": "rgba(0,0,0,0)", "circle-stroke-color": ["get", "colour"],
      "circle-stroke-opacity": ["-", 1, ["get", "age"]], "circle-stroke-width": 2,
      "circle-radius": ["+", 5, ["*", 26, ["get", "age"]]] } },
    { id: "match-halo", type: "circle", source: "matches", paint: {
      "circle-color": ["get", "colour"], "circle-blur": 1, "circle-opacity": ["*", 0.55, ["get", "o"]],
      "circle-radius": byZoom(11, 20) } },
    { id: "match-dots", type: "circle", source: "matches", paint: {
      "circle-color": ["get", "colour"], "circle-opacity": ["max", 0.5, ["get", "o"]],
      "circle-stroke-color": c("land"), "circle-stroke-width": 1, "circle-radius": byZoom(3.2, 5.6) } },
    { id: "points", type: "circle", source: "regions", filter: ["==", ["geometry-type"], "Point"], paint: {
      "circle-color": c("land"), "circle-stroke-color": ["get", "colour"], "circle-stroke-width": 3,
      "circle-radius": ["case", ["get", "selected"], 7, 5.5] } },
    { id: "draft-points", type: "circle", source: "draft", filter: ["==", ["geometry-type"], "Point"], paint: {
      "circle-color": c("land"), "circle-stroke-color": c("accent"), "circle-stroke-width": 2.5, "circle-radius": 5.5 } },
    { id: "standing", type: "circle", source: "standing", paint: {
      "circle-color": ["get", "colour"], "circle-radius": 9, "circle-stroke-color": c("land"), "circle-stroke-width": 1.5 } },
    { id: "standing-ranks", type: "symbol", source: "standing", layout: { "text-field": ["get", "rank"], "text-font": FONT,
      "text-size": 11, "text-allow-overlap": true, "symbol-sort-key": ["to-number", ["get", "rank"]] },
      paint: { "text-color": c("on-hue") } },
  ];
}

export function makeStyle() {
  const sources = Object.fromEntries(SOURCES.map((name) => [name, empty()]));
  return {
    version: 8,
    sources: {
      land: { type: "geojson", data: file("vendor/world-atlas/land.json"), tolerance: 0.4 },
      borders: { type: "geojson", data: file("vendor/world-atlas/borders.json"), tolerance: 0.4 },
      places: { type: "geojson", data: file("geo/places.json") },
      ...sources,
    },
    layers: [...groundLayers(), ...planLayers(), ...nameLayers(), ...liveLayers()],
  };
}
