// Copies the libraries and outlines of the live map into the package, with their licences.
// Run by fetch.py after `npm ci`.
import { copyFileSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { feature, mesh } from "topojson-client";
import { filter, filterWeight, presimplify, simplify } from "topojson-simplify";

const here = dirname(fileURLToPath(import.meta.url));
const modules = join(here, "node_modules");
const target = join(here, "../src/placewire/serve/page/vendor");
// Written here first, so that the target is complete or absent.
const vendor = join(modules, ".vendor");

// Square degrees: what of the outlines is smaller than this is left out.
const SMALLEST = 0.0008;
const DIGITS = 2;

const FILES = {
  "maplibre-gl": [
    ["dist/maplibre-gl.mjs", "maplibre-gl.mjs"],
    ["dist/maplibre-gl-worker.mjs", "maplibre-gl-worker.mjs"],
    ["dist/maplibre-gl.css", "maplibre-gl.css"],
    ["LICENSE.txt", "LICENSE.txt"],
  ],
  uplot: [
    ["dist/uPlot.iife.min.js", "uPlot.iife.min.js"],
    ["dist/uPlot.min.css", "uPlot.min.css"],
    ["LICENSE", "LICENSE.txt"],
  ],
  "world-atlas": [["LICENSE", "LICENSE.txt"]],
};

function manifestOf(name) {
  return JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8"));
}

function copyLibraries() {
  for (const [name, files] of Object.entries(FILES)) {
    mkdirSync(join(vendor, name), { recursive: true });
    for (const [from, to] of files) {
      const copy = join(vendor, name, to);
      copyFileSync(join(modules, name, from), copy);
      if (/\.m?js$/.test(to)) {
        // The maps of the sources stay behind, so nothing may ask for them.
        const text = readFileSync(copy, "utf8");
        writeFileSync(copy, text.replace(/\n?\/\/# sourceMappingURL=\S+\s*$/, "\n"));
      }
    }
  }
}

/** A line whose longitudes run on past 180 where they would jump: the atlas is a sphere's, the map is flat. */
function unwrapped(line) {
  let shift = 0;
  return line.map(([lon, lat], at) => {
    if (at > 0 && Math.abs(lon - line[at - 1][0]) > 180) shift += lon < line[at - 1][0] ? 360 : -360;
    return [lon + shift, lat];
  });
}

/** A ring that stays closed: one about a pole goes there and back along the edge of the map. */
function flatRing(ring) {
  const flat = unwrapped(ring);
  const [first, last] = [flat[0], flat.at(-1)];
  if (Math.abs(first[0] - last[0]) < 1) return flat;
  const pole = first[1] < 0 ? -90 : 90;
  return [...flat, [last[0], pole], [first[0], pole], first];
}

function flatten(shape) {
  const { type, coordinates } = shape.geometry;
  const flat = type === "MultiPolygon" ? coordinates.map((rings) => rings.map(flatRing)) : coordinates.map(unwrapped);
  return { type: "Feature", properties: {}, geometry: { type, coordinates: flat } };
}

function writeOutlines() {
  const atlas = JSON.parse(readFileSync(join(modules, "world-atlas/countries-50m.json"), "utf8"));
  let topology = simplify(presimplify(atlas), SMALLEST);
  topology = filter(topology, filterWeight(topology, SMALLEST));
  const { land, countries } = topology.objects;
  const round = (key, value) => (typeof value === "number" ? Number(value.toFixed(DIGITS)) : value);
  const write = (name, shape) =>
    writeFileSync(join(vendor, "world-atlas", name), JSON.stringify(shape, round) + "\n");
  const [whole] = feature(topology, land).features;
  write("land.json", flatten(whole));
  write("borders.json", flatten({ geometry: mesh(topology, countries, (one, other) => one !== other) }));
}

function writeReadme() {
  const rows = Object.keys(FILES).map((name) => {
    const { version, license } = manifestOf(name);
    return `| ${name} | ${version} | ${license} |`;
  });
  const lines = [
    "# Vendored packages of the live map",
    "",
    "Written by `make page` from the versions in `page/package-lock.json`; not edited by hand.",
    "The outlines are Natural Earth's (public domain) as world-atlas packs them, simplified.",
    "",
    "| package | version | licence |",
    "|---|---|---|",
    ...rows,
    "",
  ];
  writeFileSync(join(vendor, "README.md"), lines.join("\n"));
}

rmSync(vendor, { recursive: true, force: true });
copyLibraries();
writeOutlines();
writeReadme();
rmSync(target, { recursive: true, force: true });
renameSync(vendor, target);
