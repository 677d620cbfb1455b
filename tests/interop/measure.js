// Measures a page of mica's as the browser shows it, and puts the result into the title.
const box = getComputedStyle(document.querySelector(".mica"));
const back = box.backgroundColor;

function luminance(color) {
  const parts = color.match(/[\d.]+/g).slice(0, 3).map((n) => n / 255);
  const linear = parts.map((n) => (n <= 0.03928 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

function contrast(one, other) {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

const fill = (kind) => getComputedStyle(document.querySelector(`rect.${kind}`)).fill;
const shapes = [...document.querySelectorAll("svg > rect")].map((one) => one.getBoundingClientRect());
document.title = JSON.stringify({
  wide: document.documentElement.scrollWidth,
  screen: innerWidth,
  requests: performance.getEntriesByType("resource").length,
  dark: luminance(back) < 0.1,
  text: contrast(box.color, back),
  soft: contrast(getComputedStyle(document.querySelector(".soft")).color, back),
  read: contrast(fill("kept"), back),
  apart: contrast(fill("kept"), fill("gone")),
  shapes: shapes.length,
  drawn: shapes.filter((one) => one.width > 0 && one.height > 0).length,
});
