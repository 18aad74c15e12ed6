// SPDX-License-Identifier: MIT
// Decodes profiles with npm's pprof-format and looks at what it found: node read_with_pprof_format.js FILE...
'use strict';
const fs = require('fs');
const zlib = require('zlib');
const {Profile} = require('pprof-format');

function fail(file, text) {
  console.log(`${file}: ${text}`);
  process.exit(1);
}

for (const file of process.argv.slice(2)) {
  const profile = Profile.decode(zlib.gunzipSync(fs.readFileSync(file)));
  const text = (index) => profile.stringTable.strings[Number(index)];
  const types = profile.sampleType.map((t) => `${text(t.type)}/${text(t.unit)}`).join(' ');
  if (types !== 'alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes') fail(file, `types ${types}`);
  if (text(profile.defaultSampleType) !== 'inuse_space') fail(file, `default type ${text(profile.defaultSampleType)}`);
  const locations = new Map(profile.location.map((l) => [Number(l.id), l]));
  const functions = new Set(profile.function.map((f) => Number(f.id)));
  const mappings = new Map(profile.mapping.map((m) => [Number(m.id), m]));
  if (!mappings.has(1)) fail(file, 'no mapping 1');
  for (const sample of profile.sample) {
    const [allocObjects, allocBytes, inuseObjects, inuseBytes] = sample.value.map(Number);
    if (!(inuseObjects >= 0 && inuseObjects <= allocObjects && inuseBytes >= 0 && inuseBytes <= allocBytes)) {
      fail(file, `values ${sample.value}`);
    }
    if (sample.locationId.length === 0) fail(file, 'a row without a stack');
    for (const id of sample.locationId) {
      const location = locations.get(Number(id));
      if (location === undefined) fail(file, `no location ${id}`);
      if (Number(location.mappingId) !== 0) {
        const mapping = mappings.get(Number(location.mappingId));
        if (mapping === undefined) fail(file, `no mapping ${location.mappingId}`);
        const address = BigInt(location.address);
        if (address < BigInt(mapping.memoryStart) || address >= BigInt(mapping.memoryLimit)) fail(file, `address ${address}`);
      }
      for (const line of location.line) {
        if (!functions.has(Number(line.functionId))) fail(file, `no function ${line.functionId}`);
      }
    }
  }
}
