"use strict";
// What the scripts of all pages begin with.

const find = (id) => document.getElementById(id);

// The text of an element that holds it compressed.
async function unpacked(id) {
  const bytes = Uint8Array.from(atob(find(id).textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}
