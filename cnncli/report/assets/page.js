/* Draws the page whose data stands in #page-data. Plain JavaScript, nothing loaded, nothing sent.

   Axes: N images, C channels, H and W, F filters, KH and KW kernel, SH and SW stride, OH and OW
   output. R = C*KH*KW rows and K = OH*OW*N columns of the im2col matrix. Arrays are flat and batch
   last, (C, H, W, N). A "spot" is a place of the padded images, pixel or padding. */
"use strict";
(() => {
  const LIMITS = { cells: 100000, products: 2000000, fading: 600 };
  const TOLERANCE = 1e-9;

  // ---- geometry

  function geometryOf(sizes) {
    const g = { ...sizes };
    g.HP = g.H + g.top + g.bottom;
    g.WP = g.W + g.left + g.right;
    g.OH = Math.floor((g.HP - g.KH) / g.SH) + 1;
    g.OW = Math.floor((g.WP - g.KW) / g.SW) + 1;
    g.R = g.C * g.KH * g.KW;
    g.K = g.OH * g.OW * g.N;
    return g;
  }

  /** Take an index apart into the coordinates of an array whose axes after the first have these sizes. */
  function split(index, ...sizes) {
    const parts = [];
    for (const size of sizes.reverse()) {
      parts.unshift(index % size);
      index = Math.floor(index / size);
    }
    return [index, ...parts];
  }

  const spotAt = (g, c, h, w, n) => ((c * g.HP + h) * g.WP + w) * g.N + n;
  const rowOf = (g, r) => split(r, g.KH, g.KW); // c, i, j
  const columnOf = (g, k) => split(k, g.OW, g.N); // oh, ow, n

  /** Coordinates of a spot as the reader counts them: row 0 is the first row of the image. */
  function spotOf(g, spot) {
    const [c, hp, wp, n] = split(spot, g.HP, g.WP, g.N);
    const h = hp - g.top, w = wp - g.left;
    return { c, h, w, n, hp, wp, isPadding: h < 0 || h >= g.H || w < 0 || w >= g.W };
  }

  /** For every cell of the matrix, row by row, the spot that it reads: all of im2col and col2im. */
  function cellSpots(g) {
    const spots = new Int32Array(g.R * g.K);
    let cell = 0;
    for (let c = 0; c < g.C; c++)
      for (let i = 0; i < g.KH; i++)
        for (let j = 0; j < g.KW; j++)
          for (let oh = 0; oh < g.OH; oh++)
            for (let ow = 0; ow < g.OW; ow++)
              for (let n = 0; n < g.N; n++)
                spots[cell++] = spotAt(g, c, oh * g.SH + i, ow * g.SW + j, n);
    return spots;
  }

  /** The cells of the matrix that read a spot, window by window. */
  function cellsOf(g, spot) {
    const { c, hp, wp, n } = spotOf(g, spot);
    const cells = [];
    for (const [oh, i] of windowsAlong(hp, g.KH, g.SH, g.OH))
      for (const [ow, j] of windowsAlong(wp, g.KW, g.SW, g.OW))
        cells.push(((c * g.KH + i) * g.KW + j) * g.K + (oh * g.OW + ow) * g.N + n);
    return cells;
  }

  function windowsAlong(place, kernel, stride, count) {
    const found = [];
    const first = Math.max(0, Math.ceil((place - kernel + 1) / stride));
    for (let o = first; o < count && o * stride <= place; o++) found.push([o, place - o * stride]);
    return found;
  }

  // ---- arithmetic

  const im2col = (spots, x) => Float64Array.from(spots, (spot) => x[spot]);

  /** Add the first `columns` columns onto their spots. */
  function col2im(g, spots, cols, columns = g.K) {
    const sums = new Float64Array(g.C * g.HP * g.WP * g.N);
    for (let cell = 0; cell < cols.length; cell++) if (cell % g.K < columns) sums[spots[cell]] += cols[cell];
    return sums;
  }

  /** (F, R) times (R, K). */
  function product(weight, cols, F, R, K) {
    const y = new Float64Array(F * K);
    for (let f = 0; f < F; f++)
      for (let r = 0; r < R; r++)
        for (let k = 0; k < K; k++) y[f * K + k] += weight[f * R + r] * cols[r * K + k];
    return y;
  }

  /** For every output (c, k) the cell of its maximum: the first in row-major order, never padding. */
  function winnersOf(g, spots, x) {
    const size = g.KH * g.KW;
    return Int32Array.from({ length: g.C * g.K }, (_, output) => {
      const c = Math.floor(output / g.K), k = output % g.K;
      let winner = -1;
      for (let r = c * size; r < (c + 1) * size; r++) {
        const cell = r * g.K + k;
        if (spotOf(g, spots[cell]).isPadding) continue;
        const value = x[spots[cell]], best = winner < 0 ? undefined : x[spots[winner]];
        if (winner < 0 || value > best || (Number.isNaN(value) && !Number.isNaN(best))) winner = cell;
      }
      return winner;
    });
  }

  const largest = (values) => values.filter(Number.isFinite).reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const sizeOf = (shape) => shape.reduce((size, axis) => size * axis, 1);

  // ---- numbers of the page: given by the reader's command, or made here

  function numbers(kind, shape, start, given) {
    if (kind === "given") return crop(given, shape);
    const random = randomIntegers(7);
    const made = { counting: (i) => i + start, random: () => random(), equal: () => 1 }[kind];
    return Float64Array.from({ length: sizeOf(shape) }, (_, i) => made(i));
  }

  /** Whole numbers from -9 to 9, the same ones every time (Marsaglia's xorshift). */
  function randomIntegers(seed) {
    let state = seed * 2654435761;
    return () => {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      return ((state >>> 0) % 19) - 9;
    };
  }

  const fits = (given, shape) => shape.every((size, axis) => size <= given.shape[axis]);

  function crop(given, shape) {
    return Float64Array.from({ length: sizeOf(shape) }, (_, index) => {
      const place = split(index, ...shape.slice(1));
      return given.values[place.reduce((at, part, axis) => at * given.shape[axis] + part, 0)];
    });
  }

  /** Images (N, C, H, W) into the padded (C, HP, WP, N). */
  function padded(g, images, fill) {
    const x = new Float64Array(g.C * g.HP * g.WP * g.N).fill(fill);
    images.forEach((value, index) => {
      const [n, c, h, w] = split(index, g.C, g.H, g.W);
      x[spotAt(g, c, h + g.top, w + g.left, n)] = value;
    });
    return x;
  }

  const unpadded = (g, x) => x.filter((_, spot) => !spotOf(g, spot).isPadding);

  /** (N, F, OH, OW) into (F, OH, OW, N). */
  function batchLast(values, g, F) {
    const moved = new Float64Array(values.length);
    values.forEach((value, index) => {
      const [n, f, o] = split(index, F, g.OH * g.OW);
      moved[(f * g.OH * g.OW + o) * g.N + n] = value;
    });
    return moved;
  }

  // ---- the four topics

  const shapes = {
    x: (g) => [g.N, g.C, g.H, g.W],
    weight: (g) => [g.F, g.C, g.KH, g.KW],
    upstream: (g) => [g.N, g.F, g.OH, g.OW],
  };

  const panels = {
    x: { kind: "spot", code: "x", value: (m) => (spot) => m.x[spot] },
    windows: { kind: "window", code: "windows", note: "each with its column in the matrix", value: () => (k) => k },
    cols: {
      kind: "cell", code: "cols = im2col(x)",
      value: (m, s) => (cell) => (cell % m.g.K < s.copied ? m.cols[cell] : undefined),
    },
    sums: { kind: "spot", code: "col2im(cols)", value: (m, s) => (spot) => onPixel(m, spot, s.sums[spot]) },
    coverage: {
      kind: "spot", code: "coverage", note: "windows that each pixel lies in",
      value: (m, s) => (spot) => onPixel(m, spot, s.coverage[spot]),
    },
    weight: { kind: "weight", code: "weight", value: (m) => (index) => m.weight[index] },
    product: {
      kind: "output", code: "y = weight @ cols",
      value: (m, s) => (output) => (output < s.outputs ? m.y[output] : undefined),
    },
    maxima: {
      kind: "output", code: "y = max of each window",
      value: (m, s) => (output) => (output < s.outputs ? m.y[output] : undefined),
    },
    upstream: { kind: "output", code: "grad_output", value: (m) => (output) => m.upstream[output] },
    gradWeight: {
      kind: "weight", code: "grad_weight = grad_output @ cols.T", value: (m, s) => (index) => s.gradWeight[index],
    },
    gradInput: {
      kind: "spot", code: "grad_input = col2im(weight.T @ grad_output)",
      value: (m, s) => (spot) => onPixel(m, spot, s.gradInput[spot]),
    },
    scattered: {
      kind: "spot", code: "grad_input", note: "each gradient on its winner",
      value: (m, s) => (spot) => onPixel(m, spot, s.gradInput[spot]),
    },
  };

  const onPixel = (m, spot, value) => (spotOf(m.g, spot).isPadding ? null : value);

  const topics = {
    im2col: {
      arrays: ["x"], panels: ["x", "windows", "cols"], filters: () => 1,
      compute: () => ({}),
      steps: (m) => m.g.K,
      state: (m, step) => ({ copied: step }),
      checks: (m) => ({ im2col: m.cols, col2im: unpadded(m.g, col2im(m.g, m.spots, m.cols)) }),
      conclusion: ({ g }) =>
        `${plural(g.N * g.C * g.H * g.W, "pixel")} became ${plural(g.R * g.K, "cell")}: whatever lies in several ` +
        `windows is copied several times. Rows run over (c, i, j), columns over (oh, ow, n) with the batch fastest.`,
    },
    col2im: {
      arrays: ["x"], panels: ["x", "cols", "sums", "coverage"], filters: () => 1,
      compute: () => ({}),
      steps: (m) => m.g.K,
      state: (m, step) => ({
        copied: m.g.K,
        sums: col2im(m.g, m.spots, m.cols, step),
        coverage: col2im(m.g, m.spots, m.cols.map(() => 1), step),
      }),
      checks: (m) => topics.im2col.checks(m),
      conclusion: (m) => coverageInWords(m),
    },
    conv: {
      arrays: ["x", "weight", "upstream"],
      panels: ["x", "weight", "cols", "product", "upstream", "gradWeight", "gradInput"], filters: (sizes) => sizes.F,
      compute: (m) => ({ y: product(m.weight, m.cols, m.g.F, m.g.R, m.g.K) }),
      steps: (m) => 2 * m.g.F * m.g.K,
      state: convState,
      checks: (m) => {
        const end = convState(m, 2 * m.g.F * m.g.K);
        return {
          ...topics.im2col.checks(m), output: m.y,
          "gradient of the weight": end.gradWeight, "gradient of the input": unpadded(m.g, end.gradInput),
        };
      },
      conclusion: ({ g }) =>
        `Forward is one product, (${g.F}, ${g.R}) @ (${g.R}, ${g.K}) = (${g.F}, ${g.K}), ` +
        `${plural(g.F * g.R * g.K, "multiply-add")}. Backward are two more: grad_output @ cols.T for the weight, ` +
        `weight.T @ grad_output for the columns, and col2im adds those onto the input.`,
    },
    "max-pool": {
      arrays: ["x", "upstream"], panels: ["x", "cols", "maxima", "upstream", "scattered"], filters: (sizes) => sizes.C,
      fill: -Infinity,
      compute: (m) => {
        const winners = winnersOf(m.g, m.spots, m.x);
        return { winners, y: Float64Array.from(winners, (cell) => m.x[m.spots[cell]]) };
      },
      steps: (m) => 2 * m.y.length,
      state: poolState,
      checks: (m) => {
        const zeros = m.x.map((value, spot) => (spotOf(m.g, spot).isPadding ? 0 : value));
        const cols = im2col(m.spots, zeros);
        return {
          im2col: cols, col2im: unpadded(m.g, col2im(m.g, m.spots, cols)), output: m.y,
          "gradient of the input": unpadded(m.g, poolState(m, 2 * m.y.length).gradInput),
        };
      },
      conclusion: (m) =>
        `The gradients of grad_output sum to ${written(sum(m.upstream))}, those of grad_input to ` +
        `${written(sum(poolState(m, 2 * m.y.length).gradInput))}: nothing is lost, whatever the ties.`,
    },
  };

  function modelOf(topic, sizes, arrays) {
    const t = topics[topic];
    const g = geometryOf({ ...sizes, F: t.filters(sizes) });
    const m = { topic, g, spots: cellSpots(g), x: padded(g, arrays.x, t.fill ?? 0), weight: arrays.weight };
    m.cols = im2col(m.spots, m.x);
    if (arrays.upstream) m.upstream = batchLast(arrays.upstream, g, g.F);
    return Object.assign(m, t.compute(m));
  }

  const halves = (m, step) => {
    const half = m.y.length;
    return { copied: m.g.K, outputs: Math.min(step, half), returned: Math.max(0, step - half) };
  };

  function convState(m, step) {
    const { K, R, F } = m.g;
    const s = halves(m, step);
    s.gradWeight = new Float64Array(F * R);
    s.gradInput = new Float64Array(m.x.length);
    for (let output = 0; output < s.returned; output++) {
      const f = Math.floor(output / K), k = output % K, gradient = m.upstream[output];
      for (let r = 0; r < R; r++) {
        s.gradWeight[f * R + r] += gradient * m.cols[r * K + k];
        s.gradInput[m.spots[r * K + k]] += gradient * m.weight[f * R + r];
      }
    }
    return s;
  }

  function poolState(m, step) {
    const s = halves(m, step);
    s.gradInput = new Float64Array(m.x.length);
    for (let output = 0; output < s.returned; output++) s.gradInput[m.spots[m.winners[output]]] += m.upstream[output];
    return s;
  }

  // ---- what belongs together

  /** Everything that lights up with one number: sets of keys by kind, and the windows to outline. */
  function lightOf(m, kind, key) {
    const light = { channel: null, winner: { spot: new Set(), cell: new Set() } };
    for (const name of Object.keys(lighters)) light[name] = new Set();
    lighters[kind](m, key, light);
    if (m.winners) for (const output of light.output) addWinner(m, m.winners[output], light);
    return light;
  }

  function addWinner(m, cell, light) {
    if (light.cell.has(cell)) light.winner.cell.add(cell);
    if (light.spot.has(m.spots[cell])) light.winner.spot.add(m.spots[cell]);
  }

  const lighters = {
    spot(m, spot, light) {
      light.spot.add(spot);
      light.channel = spotOf(m.g, spot).c;
      for (const cell of cellsOf(m.g, spot)) {
        light.cell.add(cell);
        light.window.add(cell % m.g.K);
        outputsOf(m, cell % m.g.K, light.channel).forEach((output) => light.output.add(output));
      }
    },
    cell(m, cell, light) {
      const k = cell % m.g.K, r = Math.floor(cell / m.g.K);
      light.cell.add(cell);
      light.spot.add(m.spots[cell]);
      light.window.add(k);
      light.offset.add(r);
      light.channel = rowOf(m.g, r)[0];
      outputsOf(m, k, light.channel).forEach((output) => light.output.add(output));
      if (m.topic === "conv") for (let f = 0; f < m.g.F; f++) light.weight.add(f * m.g.R + r);
    },
    window(m, k, light) {
      addColumn(m, k, 0, m.g.R, light);
      outputsOf(m, k, null).forEach((output) => light.output.add(output));
    },
    output(m, output, light) {
      const { K, R, C } = m.g;
      const f = Math.floor(output / K);
      const ofChannel = m.topic === "max-pool" ? [f * (R / C), (f + 1) * (R / C)] : [0, R];
      if (m.topic === "max-pool") light.channel = f;
      addColumn(m, output % K, ...ofChannel, light);
      light.output.add(output);
      if (m.topic === "conv") for (let r = 0; r < R; r++) light.weight.add(f * R + r);
    },
    weight(m, index, light) {
      const f = Math.floor(index / m.g.R);
      addRow(m, index % m.g.R, light);
      light.weight.add(index);
      for (let k = 0; k < m.g.K; k++) light.output.add(f * m.g.K + k);
    },
    offset(m, r, light) {
      addRow(m, r, light);
      if (m.topic === "conv") for (let f = 0; f < m.g.F; f++) light.weight.add(f * m.g.R + r);
    },
  };

  function addColumn(m, k, from, to, light) {
    light.window.add(k);
    for (let r = from; r < to; r++) {
      light.cell.add(r * m.g.K + k);
      light.spot.add(m.spots[r * m.g.K + k]);
    }
  }

  function addRow(m, r, light) {
    light.offset.add(r);
    for (let cell = r * m.g.K; cell < (r + 1) * m.g.K; cell++) {
      light.cell.add(cell);
      light.spot.add(m.spots[cell]);
    }
  }

  /** The outputs of a window: of one channel where channels stay apart, of every filter otherwise. */
  function outputsOf(m, k, channel) {
    if (!m.y) return [];
    if (m.topic === "max-pool" && channel !== null) return [channel * m.g.K + k];
    return Array.from({ length: m.g.F }, (_, f) => f * m.g.K + k);
  }

  // ---- words

  const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
  const pair = (a, b) => `(${a}, ${b})`;

  /** A number in a sentence. */
  function written(value, digits = 6) {
    if (Number.isNaN(value)) return "NaN";
    if (!Number.isFinite(value)) return value > 0 ? "\u221e" : "-\u221e";
    const isShort = Number.isInteger(value) && Math.abs(value) < 1e15;
    return String(isShort ? value || 0 : Number(value.toPrecision(digits)));
  }

  function listed(items, limit = 12) {
    const shown = items.slice(0, limit).join(", ");
    return items.length > limit ? `${shown} and ${items.length - limit} more` : shown;
  }

  const summed = (terms) => (terms.length > 9 ? `${terms.slice(0, 8).join(" + ")} + ...` : terms.join(" + "));

  function suffix(g, parts) {
    const words = [];
    if (parts.c !== undefined && g.C > 1) words.push(`channel ${parts.c}`);
    if (parts.f !== undefined) words.push(`filter ${parts.f}`);
    if (g.N > 1) words.push(`image ${parts.n}`);
    return words.length ? ` of ${words.join(", ")}` : "";
  }

  function spotName(g, spot) {
    const at = spotOf(g, spot);
    return `${at.isPadding ? "padding at" : "pixel"} ${pair(at.h, at.w)}${suffix(g, at)}`;
  }

  const windowPair = (g, k) => pair(...columnOf(g, k).slice(0, 2));

  function windowName(g, k, parts = {}) {
    return `window ${windowPair(g, k)}${suffix(g, { ...parts, n: columnOf(g, k)[2] })}`;
  }

  const say = {
    spot(m, spot) {
      const cells = cellsOf(m.g, spot);
      const windows = cells.map((cell) => windowPair(m.g, cell % m.g.K));
      const where = windows.length
        ? `lies in ${plural(windows.length, "window")}: ${listed(windows)}.`
        : "lies in no window.";
      return `The ${spotName(m.g, spot)} ${where} ${aboutSpot(m, spot, cells)}`;
    },
    cell(m, cell) {
      const r = Math.floor(cell / m.g.K), k = cell % m.g.K;
      return `Row ${r}, column ${k}: (c, i, j) = (${rowOf(m.g, r).join(", ")}) of ${windowName(m.g, k)}. ` +
        `The cell is the ${spotName(m.g, m.spots[cell])}, ${written(m.cols[cell])}.`;
    },
    window(m, k) {
      const values = Array.from({ length: m.g.R }, (_, r) => written(m.cols[r * m.g.K + k]));
      return `${capital(windowName(m.g, k))} is column ${k} of the matrix: ${listed(values)}.`;
    },
    output: (m, output) => (m.topic === "conv" ? sayProduct(m, output) : sayMaximum(m, output)),
    weight(m, index) {
      const f = Math.floor(index / m.g.R), r = index % m.g.R;
      return `The weight ${written(m.weight[index])} of filter ${f} at (c, i, j) = (${rowOf(m.g, r).join(", ")}) ` +
        `multiplies row ${r} of the matrix.`;
    },
    offset(m, r) {
      return `Row ${r} of the matrix is what the kernel reads at (c, i, j) = (${rowOf(m.g, r).join(", ")}), ` +
        "one number for each window.";
    },
  };

  function aboutSpot(m, spot, cells) {
    const { isPadding } = spotOf(m.g, spot);
    const value = m.x[spot];
    if (isPadding) {
      if (m.topic === "max-pool") return "Padding never wins.";
      return "It stands for 0, and what col2im would add to it is dropped.";
    }
    return {
      im2col: () => cells.length
        ? `Its value ${written(value)} is copied to ${plural(cells.length, "cell")} of the matrix.`
        : "It is not in the matrix.",
      col2im: () => cells.length
        ? `It comes back as ${summed(cells.map((cell) => written(m.cols[cell])))} = ` +
          `${written(sum(cells.map((cell) => m.cols[cell])))}.`
        : "It comes back as 0.",
      conv: () =>
        `Its gradient is ${written(convState(m, 2 * m.y.length).gradInput[spot])}, the sum over all windows and filters.`,
      "max-pool": () => {
        const channel = spotOf(m.g, spot).c;
        const won = cells.filter((cell) => m.winners[channel * m.g.K + (cell % m.g.K)] === cell);
        const where = won.length === cells.length && won.length > 1 ? "all of them" : plural(won.length, "window");
        return `It wins in ${where}, ` +
          `so its gradient is ${written(poolState(m, 2 * m.y.length).gradInput[spot])}.`;
      },
    }[m.topic]();
  }

  const capital = (text) => text[0].toUpperCase() + text.slice(1);

  function sayProduct(m, output) {
    const { K, R } = m.g;
    const f = Math.floor(output / K), k = output % K;
    const terms = Array.from({ length: R }, (_, r) =>
      `${written(m.weight[f * R + r], 3)}\u00b7${written(m.cols[r * K + k], 3)}`);
    return `Row ${f} of the weight times column ${k}, ${windowName(m.g, k)}: ${summed(terms)} = ${written(m.y[output])}.`;
  }

  function sayMaximum(m, output) {
    const { K, KH, KW } = m.g;
    const c = Math.floor(output / K), k = output % K;
    const cells = Array.from({ length: KH * KW }, (_, r) => (c * KH * KW + r) * K + k);
    const inside = cells.filter((cell) => !spotOf(m.g, m.spots[cell]).isPadding);
    const winner = m.winners[output];
    const ties = inside.filter((cell) => Object.is(m.cols[cell] + 0, m.cols[winner] + 0));
    const first = ties.length > 1
      ? `${written(m.y[output])} is there ${ties.length} times; the first in row-major order wins,`
      : `the largest is ${written(m.y[output])},`;
    return `${capital(windowName(m.g, k, { c }))}: of ${listed(inside.map((cell) => written(m.cols[cell])))} ` +
      `${first} the ${spotName(m.g, m.spots[winner])}.`;
  }

  /** What one step does, in words. */
  function sayStep(m, step) {
    const t = { im2col: sayCopy, col2im: sayAdding, conv: sayConvStep, "max-pool": sayPoolStep }[m.topic];
    return t(m, step);
  }

  function sayCopy(m, step) {
    const k = step - 1;
    const values = Array.from({ length: m.g.R }, (_, r) => written(m.cols[r * m.g.K + k]));
    return `${capital(windowName(m.g, k))} is copied into column ${k}: ${listed(values)}.`;
  }

  function sayAdding(m, step) {
    const k = step - 1;
    const before = col2im(m.g, m.spots, m.cols, k);
    const additions = [];
    for (let cell = k; cell < m.cols.length; cell += m.g.K) {
      const spot = m.spots[cell], { h, w, isPadding } = spotOf(m.g, spot);
      if (isPadding) continue;
      const [now, added] = [before[spot], m.cols[cell]];
      additions.push(`${pair(h, w)} ${written(now)} + ${written(added)} = ${written(now + added)}`);
    }
    return `Column ${k} is added onto ${windowName(m.g, k)}: ${listed(additions, 6)}.`;
  }

  function sayConvStep(m, step) {
    if (step <= m.y.length) return sayProduct(m, step - 1);
    const output = step - 1 - m.y.length;
    const f = Math.floor(output / m.g.K), k = output % m.g.K;
    return `Backward, ${windowName(m.g, k, { f })}: its gradient ${written(m.upstream[output])} times column ${k} ` +
      `is added to row ${f} of grad_weight; times row ${f} of the weight it is added onto the window in grad_input.`;
  }

  function sayPoolStep(m, step) {
    if (step <= m.y.length) return sayMaximum(m, step - 1);
    const output = step - 1 - m.y.length;
    const c = Math.floor(output / m.g.K), k = output % m.g.K;
    const spot = m.spots[m.winners[output]], gradient = m.upstream[output];
    const before = poolState(m, step - 1).gradInput[spot];
    return `Backward, ${windowName(m.g, k, { c })}: its gradient ${written(gradient)} goes to its winner, ` +
      `the ${spotName(m.g, spot)}: ${written(before)} + ${written(gradient)} = ${written(before + gradient)}.`;
  }

  function coverageInWords(m) {
    const counts = unpadded(m.g, col2im(m.g, m.spots, m.cols.map(() => 1)));
    const most = counts.reduce((a, b) => Math.max(a, b), 0), missed = counts.filter((count) => count === 0).length;
    if (most <= 1 && missed === 0) {
      return "Here every pixel lies in exactly one window, so col2im gives x back: " +
        "the one case in which it is the inverse.";
    }
    const product = "col2im(im2col(x)) = x \u00d7 coverage, and dividing by the coverage gives";
    if (missed === 0) return `${product} x back.`;
    const [lie, come] = missed === 1 ? ["lies", "comes"] : ["lie", "come"];
    return `${product} the others back. ${plural(missed, "pixel")} ${lie} in no window and ${come} back as 0.`;
  }

  // ---- sizes and their faults

  const FIELDS = [
    ["Input", [["N", "N", "images in the batch"], ["C", "C", "channels"], ["H", "H", "height"], ["W", "W", "width"]]],
    ["Filters", [["F", "F", "filters"]]],
    ["Kernel", [["KH", "KH", "height"], ["KW", "KW", "width"]]],
    ["Stride", [["SH", "SH", "height"], ["SW", "SW", "width"]]],
    ["Padding", ["top", "bottom", "left", "right"].map((side) => [side, side, side])],
  ];

  const fieldsOf = (topic) => FIELDS.filter(([group]) => group !== "Filters" || topic === "conv");

  /** Read the sizes from texts: either {sizes} or the sentence that says what is wrong, and where. */
  function readSizes(topic, texts) {
    const sizes = { F: 1 };
    for (const [group, fields] of fieldsOf(topic)) {
      const least = group === "Padding" ? 0 : 1;
      for (const [name, , meaning] of fields) {
        const text = texts[name].trim();
        if (!/^\d+$/.test(text) || Number(text) < least) {
          const came = text ? `, not ${text}` : "";
          return { field: name, fault: `${group} ${meaning} must be a whole number of at least ${least}${came}.` };
        }
        sizes[name] = Number(text);
      }
    }
    return faultOf(topic, sizes) ?? { sizes };
  }

  function faultOf(topic, sizes) {
    const g = geometryOf({ ...sizes, F: topics[topic].filters(sizes) });
    if (g.KH > g.HP || g.KW > g.WP) {
      return {
        field: g.KH > g.HP ? "KH" : "KW",
        fault: `A kernel of ${g.KH}\u00d7${g.KW} does not fit into the padded input of ${g.HP}\u00d7${g.WP}: ` +
          "make the kernel smaller, or the input or its padding larger.",
      };
    }
    const half = { height: Math.floor(g.KH / 2), width: Math.floor(g.KW / 2) };
    const over = { top: half.height, bottom: half.height, left: half.width, right: half.width };
    const side = topic === "max-pool" && Object.keys(over).find((name) => sizes[name] > over[name]);
    if (side) {
      return {
        field: side,
        fault: `Max-pool takes padding of at most half the kernel, here ${half.height}\u00d7${half.width}, ` +
          "so that every window holds a pixel.",
      };
    }
    const cells = g.R * g.K, pixels = g.N * g.C * g.HP * g.WP;
    if (!(cells <= LIMITS.cells && pixels <= LIMITS.cells && g.F * (topic === "conv" ? cells : 1) <= LIMITS.products)) {
      return {
        field: "N",
        fault: `These sizes make a matrix of ${g.R.toLocaleString("en")}\u00d7${g.K.toLocaleString("en")}; this page ` +
          `computes up to ${LIMITS.cells.toLocaleString("en")} cells. Make N, C, H, W or the kernel smaller.`,
      };
    }
    return null;
  }

  // ---- elements

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== null) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  const ICONS = {
    start: "M3 3h2v10H3zM13 3v10L6 8z", back: "M11 3v10L4 8z", play: "M4 2.5v11L13 8z",
    pause: "M4 3h3v10H4zM9 3h3v10H9z", forward: "M5 3v10l7-5z", end: "M11 3h2v10h-2zM3 3v10l7-5z",
  };

  function icon(name) {
    const holder = document.createElement("template");
    holder.innerHTML = `<svg viewBox="0 0 16 16" aria-hidden="true"><path d="${ICONS[name]}"/></svg>`;
    return holder.content.firstChild;
  }

  // ---- how panels are laid out: which axes make planes, rows and columns

  const layouts = {
    spot: (g) => ({
      planes: ["n", "c"], rows: "h", columns: "w", key: (n, c, h, w) => spotAt(g, c, h, w, n),
      rowName: (h) => h - g.top, columnName: (w) => w - g.left,
      axes: "N, C, H, W", shape: [g.N, g.C, g.H, g.W],
    }),
    window: (g) => ({
      planes: ["n", null], rows: "oh", columns: "ow", key: (n, _, oh, ow) => (oh * g.OW + ow) * g.N + n,
      rowName: String, columnName: String, axes: "OH, OW, N", shape: [g.OH, g.OW, g.N],
    }),
    output: (g) => ({
      planes: ["n", "f"], rows: "oh", columns: "ow", key: (n, f, oh, ow) => f * g.K + (oh * g.OW + ow) * g.N + n,
      rowName: String, columnName: String, axes: "N, F, OH, OW", shape: [g.N, g.F, g.OH, g.OW],
    }),
    cell: (g) => ({
      planes: [null, null], rows: "r", columns: "k", key: (_, __, r, k) => r * g.K + k,
      rowName: (r) => rowOf(g, r).join(","), columnName: (k) => columnOf(g, k).join(","),
      rowKind: "offset", columnKind: "window", corner: "c,i,j \\ oh,ow,n",
      axes: "C\u00b7KH\u00b7KW, OH\u00b7OW\u00b7N", shape: [g.R, g.K],
    }),
    weight: (g) => ({
      planes: [null, null], rows: "f", columns: "r", key: (_, __, f, r) => f * g.R + r,
      rowName: (f) => f, columnName: (r) => rowOf(g, r).join(","),
      columnKind: "offset", corner: "f \\ c,i,j", axes: "F, C\u00b7KH\u00b7KW", shape: [g.F, g.R],
    }),
  };

  const AXIS_NAMES = {
    n: "images", c: "channels", f: "filters", h: "rows of the images", w: "columns of the images",
    oh: "rows of windows", ow: "columns of windows", r: "rows of the matrix", k: "columns of the matrix",
  };

  /** The part of each axis that is drawn, so that large sizes stay quick. */
  function spansOf(topic, g) {
    const total = { n: g.N, c: g.C, f: g.F, h: g.HP, w: g.WP, oh: g.OH, ow: g.OW, r: g.R, k: g.K };
    const size = { ...total };
    for (const axis of ["h", "w", "oh", "ow"]) size[axis] = Math.min(total[axis], 36);
    size.r = Math.min(g.R, 40);
    size.k = Math.min(g.K, Math.max(12, Math.floor(3000 / size.r)));
    const area = Math.max(size.h * size.w, size.oh * size.ow);
    const planes = Math.max(1, Math.min(12, Math.floor(1200 / area)));
    size.c = Math.min(g.C, planes);
    size.f = Math.min(g.F, planes);
    size.n = Math.min(g.N, Math.max(1, Math.floor(planes / Math.max(size.c, size.f))));
    const span = (axis) => [axis, { start: 0, size: size[axis], total: total[axis] }];
    return Object.fromEntries(Object.keys(total).map(span));
  }

  const indices = (span) => Array.from({ length: span ? span.size : 1 }, (_, i) => i + (span ? span.start : 0));

  // ---- the page

  class ExplainPage {
    constructor(root, data) {
      this.root = root;
      this.data = data;
      this.topic = data.topic;
      this.sources = Object.fromEntries(
        topics[this.topic].arrays.map((name) => [name, data.arrays[name] ? "given" : "counting"]),
      );
      this.hover = this.pin = null;
      this.lit = [];
      this.build();
      this.listen();
      this.resize();
      this.check();
    }

    // -- building

    build() {
      this.alarm = element("div", { id: "alarm", class: "alarm", role: "alert", hidden: "" });
      this.notice = element("p", { class: "notice", id: "notice" });
      this.stage = element("div", { id: "stage", class: "stage" });
      this.shown = element("div", { id: "shown", class: "shown", role: "group", "aria-label": "The part that is shown" });
      this.conclusion = element("p", { id: "conclusion", class: "conclusion" });
      this.verdict = element("p", { id: "verdict", class: "verdict" });
      this.root.append(
        this.alarm, this.notice, this.buildSizes(), this.buildPlayer(), this.shown, this.stage, this.conclusion,
        element("footer", {}, this.verdict, element("p", { class: "keys" },
          "Point at a number, or move over the numbers with the arrow keys. Enter or a tap pins what is lit, Escape ",
          "releases it, space plays, and the left and right arrow keys step when no number has the focus.")),
      );
    }

    buildSizes() {
      this.inputs = {};
      const groups = fieldsOf(this.topic).map(([group, fields]) => element(
        "fieldset", {}, element("legend", {}, group), ...fields.map((field) => this.buildField(group, field)),
      ));
      this.selects = {};
      const sources = element("fieldset", { class: "sources" }, element("legend", {}, "Numbers"),
        ...topics[this.topic].arrays.map((name) => this.buildSource(name)));
      this.fault = element("p", { id: "fault", class: "fault", role: "alert" });
      this.formula = element("p", { id: "formula", class: "formula" });
      this.summary = element("span", { class: "sizes-now" });
      const isWide = window.matchMedia("(min-width: 48rem)").matches;
      return element("details", { class: "sizes", id: "sizes", ...(isWide ? { open: "" } : {}) },
        element("summary", {}, "Sizes", this.summary),
        element("form", { onsubmit: (event) => event.preventDefault() },
          element("div", { class: "groups" }, ...groups, sources,
            element("button", { type: "button", id: "reset", onclick: () => this.reset() }, "Start over"))),
        this.fault, this.formula);
    }

    buildField(group, [name, label, meaning]) {
      const input = element("input", {
        type: "number", id: `size-${name}`, min: group === "Padding" ? 0 : 1, step: 1, inputmode: "numeric",
        value: this.data.sizes[name], "aria-label": `${group} ${meaning}`, title: `${group} ${meaning}`,
        oninput: () => this.resize(),
      });
      this.inputs[name] = input;
      return element("label", {}, element("span", { "aria-hidden": "true" }, label), input);
    }

    buildSource(name) {
      const start = name === "x" ? 0 : 1;
      const counted = `${start}, ${start + 1}, ${start + 2}, ...`;
      const options = [["given", "as given"], ["counting", counted], ["random", "random"], ["equal", "all 1"]]
        .filter(([kind]) => kind !== "given" || this.data.arrays[name])
        .map(([kind, label]) => element("option", { value: kind }, label));
      const label = name === "upstream" ? "grad_output" : name;
      const select = element("select", {
        id: `numbers-${name}`, "aria-label": `Numbers of ${label}`,
        onchange: () => { this.sources[name] = select.value; this.resize(); },
      }, ...options);
      this.selects[name] = select;
      return element("label", {}, element("span", { "aria-hidden": "true" }, label), select);
    }

    buildPlayer() {
      const button = (name, label, act) =>
        element("button", { type: "button", id: name, "aria-label": label, title: label, onclick: act }, icon(name));
      this.playButton = button("play", "Play", () => this.toggle());
      this.slider = element("input", {
        type: "range", id: "step", min: 0, step: 1, "aria-label": "Step",
        oninput: () => { this.pause(); this.go(Number(this.slider.value)); },
      });
      this.progress = element("span", { id: "progress" });
      this.words = element("p", { id: "words", class: "words", role: "status", "aria-live": "polite" });
      this.release = element("button", {
        type: "button", id: "release", class: "release", hidden: "", onclick: () => this.letGo(),
      }, "Release");
      return element("section", { class: "player", "aria-label": "Steps" },
        element("div", { class: "controls" },
          button("start", "To the start", () => { this.pause(); this.go(0); }),
          button("back", "One step back", () => { this.pause(); this.go(this.step - 1); }),
          this.playButton,
          button("forward", "One step forward", () => { this.pause(); this.go(this.step + 1); }),
          button("end", "To the end", () => { this.pause(); this.go(this.steps); }),
          this.slider, this.progress),
        element("div", { class: "said" }, this.words, this.release));
    }

    // -- sizes and numbers

    reset() {
      for (const [name, input] of Object.entries(this.inputs)) input.value = this.data.sizes[name];
      for (const name of Object.keys(this.sources)) this.sources[name] = this.data.arrays[name] ? "given" : "counting";
      this.resize();
    }

    resize() {
      const texts = Object.fromEntries(Object.entries(this.inputs).map(([name, input]) => [name, input.value]));
      const { sizes, fault, field } = readSizes(this.topic, texts);
      for (const [name, input] of Object.entries(this.inputs)) {
        if (name === field) input.setAttribute("aria-invalid", "true");
        else input.removeAttribute("aria-invalid");
      }
      this.fault.textContent = fault ? `${fault} Below are still the last sizes that worked.` : "";
      this.stage.classList.toggle("stale", Boolean(fault));
      if (fault) return;
      this.pause();
      const { arrays, replaced } = this.arraysFor(sizes);
      this.model = modelOf(this.topic, sizes, arrays);
      this.steps = topics[this.topic].steps(this.model);
      this.step = this.steps;
      this.hasStepped = false;
      this.hover = this.pin = null;
      this.spans = spansOf(this.topic, this.model.g);
      this.slider.max = this.steps;
      this.notice.textContent = [this.data.note, replaced].filter(Boolean).join(" ");
      this.tellSizes();
      this.render();
    }

    /** The numbers for these sizes; where those given do not reach, counted ones, and a sentence. */
    arraysFor(sizes) {
      const g = geometryOf({ ...sizes, F: topics[this.topic].filters(sizes) });
      const arrays = {}, short = [];
      for (const name of topics[this.topic].arrays) {
        const shape = shapes[name](g), given = this.data.arrays[name];
        let kind = this.sources[name];
        if (kind === "given" && !fits(given, shape)) {
          kind = "counting";
          short.push(`${name === "upstream" ? "grad_output" : name} (${given.shape.join(", ")})`);
        }
        this.selects[name].value = kind;
        arrays[name] = numbers(kind, shape, name === "x" ? 0 : 1, given);
      }
      const replaced = `The numbers given for ${short.join(" and ")} do not reach these sizes; counted ones stand in.`;
      return { arrays, replaced: short.length ? replaced : "" };
    }

    tellSizes() {
      const { g } = this.model;
      const along = (o, size, before, after, kernel, stride, result) =>
        `${o} = \u230a(${size} + ${before} + ${after} \u2212 ${kernel}) / ${stride}\u230b + 1 = ${result}`;
      this.formula.replaceChildren(
        element("span", {}, along("OH", g.H, g.top, g.bottom, g.KH, g.SH, g.OH)),
        element("span", {}, along("OW", g.W, g.left, g.right, g.KW, g.SW, g.OW)),
        element("span", {}, `cols: (C\u00b7KH\u00b7KW, OH\u00b7OW\u00b7N) = (${g.R}, ${g.K})`),
      );
      const padding = [g.top, g.bottom, g.left, g.right];
      this.summary.textContent = ` x (${g.N}, ${g.C}, ${g.H}, ${g.W}), kernel ${g.KH}\u00d7${g.KW}, ` +
        `stride ${g.SH}\u00d7${g.SW}` + (padding.some(Boolean) ? `, padding ${padding.join(" ")}` : "");
    }

    // -- drawing

    /** Draw the panels: all of them, or those with an axis of which another part is now shown. */
    render(moved = null) {
      const { place, dataset } = document.activeElement;
      const held = place && { name: place.plane.name, kind: dataset.kind, key: Number(dataset.key) };
      this.isDrawing = true;
      const names = topics[this.topic].panels;
      for (const name of names) {
        const old = this.panes?.[name];
        if (moved && !old.axes.some((axis) => moved.includes(axis))) continue;
        this.panes = { ...this.panes, [name]: this.renderPanel(name) };
        if (moved) old.section.replaceWith(this.panes[name].section);
      }
      if (!moved) this.stage.replaceChildren(...names.map((name) => this.panes[name].section));
      // thousands of cells that fade at once would hold the page up
      this.stage.classList.toggle("lively", sum(names.map((name) => this.panes[name].cells.size)) <= LIMITS.fading);
      this.renderShown();
      if (held && !document.activeElement.place) this.regain(held);
      this.isDrawing = false;
      this.update();
    }

    /** Put the focus back on the number that had it, or on another one of its panel. */
    regain({ name, kind, key }) {
      const { numbers, planes } = this.panes[name];
      const same = numbers.find((number) => number.kind === kind && number.key === key);
      this.focus(same ? same.cell : planes[0].stop, { preventScroll: true });
    }

    renderPanel(name) {
      const { g } = this.model;
      const panel = panels[name], layout = layouts[panel.kind](g);
      const isPool = this.topic === "max-pool" && panel.kind === "output";
      const isDense = this.spans[layout.columns].size > 16 && panel.kind !== "cell" && panel.kind !== "weight";
      const pane = { name, layout, cells: new Map(), numbers: [], axes: [...layout.planes, layout.rows, layout.columns] };
      const planes = this.along(layout.planes[0]).flatMap((first) =>
        this.along(layout.planes[1]).map((second) => this.renderPlane(pane, first, second)));
      const end = panel.value(this.model, topics[this.topic].state(this.model, this.steps));
      pane.planes = planes.map(({ plane }) => plane);
      pane.format = formatOf([...pane.cells.keys()].map(end), { isDense, isShaded: panel.kind !== "window" });
      pane.section = element("section", {
        class: isDense ? "panel dense" : "panel", "data-panel": name, "aria-labelledby": `${name}-title`,
      },
        element("h2", { id: `${name}-title` }, element("code", {}, panel.code)),
        element("p", { class: "shape" }, `(${isPool ? "N, C, OH, OW" : layout.axes}) = (${layout.shape.join(", ")})`),
        element("div", { class: "planes" }, ...planes.map(({ framed }) => framed)),
        element("p", { class: "note" }, noteOf(name, g)));
      this.measure(pane, isDense);
      return pane;
    }

    /** Give all cells of a panel one width, and all row headers another; digits are about 0.56em wide. */
    measure({ section, planes, format, layout }, isDense) {
      const longest = (texts) => Math.max(...texts.map((text) => String(text).length));
      const [{ rows, columns }] = planes;
      const digit = isDense ? 0.36 : 0.5, label = isDense ? 0.325 : 0.385;
      const ofNumbers = format.width * digit + (isDense ? 0.25 : 0.875);
      const side = Math.max(ofNumbers, longest(columns.map(layout.columnName)) * label + 0.25);
      const corner = (layout.corner ?? "").length * 0.31; // mostly commas and narrow letters
      const head = Math.max(longest(rows.map(layout.rowName)) * label, corner) + (isDense ? 0.375 : 0.625);
      section.style.setProperty("--side", `${Math.max(side, isDense ? 1.375 : 2.25)}rem`);
      section.style.setProperty("--head", `${head}rem`);
    }

    along(axis) {
      return indices(axis && this.spans[axis]);
    }

    renderPlane(pane, first, second) {
      const { name, layout } = pane;
      const rows = this.along(layout.rows), columns = this.along(layout.columns);
      const title = this.planeTitle(layout, first, second);
      const head = columns.map((column) =>
        this.header(pane, layout.columnKind, column, layout.columnName(column), "columnheader"));
      const corner = element("span", { class: "corner", role: "columnheader" }, layout.corner ?? "");
      const grid = element("div", {
        class: "plane", role: "grid", "aria-label": `${panels[name].code}${title ? `, ${title}` : ""}`,
        "aria-rowcount": this.spans[layout.rows].total + 1, "aria-colcount": this.spans[layout.columns].total + 1,
      }, element("div", { role: "row", class: "row" }, corner, ...head));
      const plane = { name, layout, first, second, rows, columns, grid, lines: [] };
      if (layout.columnKind) plane.lines.push([...(layout.rowKind ? [null] : []), ...head]);
      for (const row of rows) {
        const label = this.header(pane, layout.rowKind, row, layout.rowName(row), "rowheader");
        const cells = columns.map((column) => this.numberCell(pane, [first, second, row, column]));
        grid.append(element("div", { role: "row", class: "row" }, label, ...cells));
        plane.lines.push(layout.rowKind ? [label, ...cells] : cells);
      }
      plane.lines.forEach((line, y) => line.forEach((cell, x) => { if (cell) cell.place = { plane, x, y }; }));
      plane.stop = plane.lines.at(-1).find((cell) => cell.dataset.panel);
      plane.stop.tabIndex = 0;
      const framed = element("div", { class: "plane-frame" }, title ? element("p", { class: "plane-title" }, title) : "",
        element("div", { class: "scroll" }, grid));
      return { plane, framed };
    }

    planeTitle(layout, first, second) {
      const { g } = this.model;
      const parts = [];
      if (layout.planes[0] && g.N > 1) parts.push(`image ${first}`);
      if (layout.planes[1] === "c" && g.C > 1) parts.push(`channel ${second}`);
      if (layout.planes[1] === "f" && g.F > 1) parts.push(`${this.topic === "conv" ? "filter" : "channel"} ${second}`);
      return parts.join(", ");
    }

    header(pane, kind, key, text, role) {
      const cell = element("span", { class: "head", role }, String(text));
      if (kind) this.register(pane, cell, kind, key);
      return cell;
    }

    /** A cell carries where it stands: data-n, data-c, data-h, data-w, or data-r, data-k, and so on. */
    numberCell(pane, [first, second, row, column]) {
      const { layout, name } = pane, { kind } = panels[name], { g, spots } = this.model;
      const key = layout.key(first, second, row, column), isSpot = kind === "spot";
      const isPadding = isSpot ? spotOf(g, key).isPadding : kind === "cell" && spotOf(g, spots[key]).isPadding;
      const cell = element("span", { class: isPadding ? "cell padding" : "cell", role: "gridcell", "data-panel": name });
      const [a, b] = layout.planes;
      if (a) cell.dataset[a] = first;
      if (b) cell.dataset[b] = second;
      cell.dataset[layout.rows] = isSpot ? layout.rowName(row) : row;
      cell.dataset[layout.columns] = isSpot ? layout.columnName(column) : column;
      cell.number = NaN; // equal to nothing, so that the first number is written
      pane.cells.set(key, cell);
      return this.register(pane, cell, kind, key);
    }

    /** Make a cell something that can be pointed at. */
    register(pane, cell, kind, key) {
      cell.tabIndex = -1;
      cell.dataset.kind = kind;
      cell.dataset.key = key;
      pane.numbers.push({ cell, kind, key });
      return cell;
    }

    renderShown() {
      const used = new Set(Object.values(this.panes).flatMap(({ axes }) => axes));
      const parts = Object.entries(this.spans).filter(([axis, span]) => used.has(axis) && span.size < span.total);
      this.shown.hidden = parts.length === 0;
      this.shown.replaceChildren(
        element("p", {}, "These sizes are large, so the page shows a part of them:"),
        ...parts.map(([axis, span]) => this.pager(axis, span)));
    }

    pager(axis, span) {
      const last = span.start + span.size - 1;
      const range = span.size === 1 ? span.start : `${span.start} to ${last}`;
      const turn = (label, text, start) => element("button", {
        type: "button", "aria-label": `${label} ${AXIS_NAMES[axis]}`, ...((start === span.start) ? { disabled: "" } : {}),
        onclick: () => { span.start = start; this.render([axis]); },
      }, text);
      return element("span", { class: "pager", "data-axis": axis },
        turn("earlier", "\u2039", Math.max(0, span.start - span.size)),
        `${AXIS_NAMES[axis]} ${range} of ${span.total.toLocaleString("en")}`,
        turn("later", "\u203a", Math.min(span.total - span.size, span.start + span.size)));
    }

    /** Write the numbers of the current step. */
    update() {
      const state = topics[this.topic].state(this.model, this.step);
      for (const { name, cells, format } of Object.values(this.panes)) {
        const value = panels[name].value(this.model, state);
        for (const [key, cell] of cells) this.write(cell, value(key), format);
      }
      this.slider.value = this.step;
      const half = this.model.y ? this.model.y.length : this.steps;
      const phase = half < this.steps && this.step > 0 ? (this.step > half ? ", backward" : ", forward") : "";
      this.progress.textContent = `step ${this.step} of ${this.steps}${phase}`;
      this.slider.setAttribute("aria-valuetext", this.progress.textContent);
      this.conclusion.textContent = topics[this.topic].conclusion(this.model);
      this.paint();
    }

    write(cell, number, { text, shade }) {
      if (cell.number === number) return;
      cell.number = number;
      cell.textContent = text(number);
      cell.style.setProperty("--shade", shade(number));
    }

    // -- highlights

    /** What is lit: the pinned number, else the one pointed at, else the last step. */
    current() {
      const m = this.model, chosen = this.pin ?? this.hover;
      if (chosen) return { light: lightOf(m, chosen.kind, chosen.key), words: say[chosen.kind](m, chosen.key), chosen };
      if (!this.hasStepped || this.step === 0) return null;
      if (!m.y) return { light: lightOf(m, "window", this.step - 1), words: sayStep(m, this.step) };
      return { light: lightOf(m, "output", (this.step - 1) % m.y.length), words: sayStep(m, this.step) };
    }

    paint() {
      for (const cell of this.lit) {
        cell.classList.remove("lit", "chosen", "winner");
        cell.removeAttribute("aria-selected");
      }
      this.stage.querySelectorAll(".outline").forEach((outline) => outline.remove());
      this.lit = [];
      const now = this.current();
      this.stage.classList.toggle("pinned", Boolean(this.pin));
      this.release.hidden = !this.pin;
      this.setWords(now ? now.words + this.outside(now.light) : this.invitation());
      if (now) {
        for (const { numbers } of Object.values(this.panes)) for (const number of numbers) this.paintNumber(number, now);
        this.outline(now.light);
      }
    }

    /** Say how many of the lit cells are not drawn. */
    outside({ cell: cells }) {
      const missing = cells.size - this.drawn(cells);
      return missing ? ` Outside the part shown: ${missing} of ${plural(cells.size, "lit cell")} of the matrix.` : "";
    }

    paintNumber({ cell, kind, key }, { light, chosen }) {
      if (!light[kind].has(key)) return;
      const isChosen = Boolean(chosen) && kind === chosen.kind && key === chosen.key;
      if (isChosen && this.pin) cell.setAttribute("aria-selected", "true");
      cell.classList.add("lit");
      cell.classList.toggle("chosen", isChosen);
      cell.classList.toggle("winner", Boolean(light.winner[kind]?.has(key)));
      this.lit.push(cell);
    }

    invitation() {
      if (this.hasStepped) return "Nothing is done yet. Step forward or press play.";
      return this.topic === "im2col" || this.topic === "col2im"
        ? "Point at a number to see where it comes from and where it goes, or press play."
        : "Point at a number to see what it depends on, or press play: first forward, then backward.";
    }

    setWords(words) {
      if (this.words.textContent !== words) this.words.textContent = words;
    }

    /** Draw the lit windows over the images: each one, or where they are many a frame around all. */
    outline(light) {
      const { g } = this.model;
      const planes = Object.values(this.panes).flatMap((pane) => pane.planes);
      for (const plane of planes.filter(({ layout }) => layout.rows === "h")) {
        if (light.channel !== null && light.channel !== plane.second) continue;
        const frames = [...light.window].map((k) => columnOf(g, k)).filter(([, , n]) => n === plane.first)
          .map(([oh, ow]) => ({ h: oh * g.SH, w: ow * g.SW, height: g.KH, width: g.KW }));
        const drawn = frames.length > 9 ? [around(frames)] : frames;
        drawn.forEach((frame, index) => this.frame(plane, frame, drawn.length === 1 ? null : index));
      }
    }

    frame(plane, { h, w, height, width }, index) {
      const rows = clip(h, height, this.spans.h), columns = clip(w, width, this.spans.w);
      if (!rows || !columns) return;
      const first = plane.lines[rows[0]][columns[0]], last = plane.lines[rows[1] - 1][columns[1] - 1];
      const inset = index === null ? 0 : (index % 4) * 2;
      const frame = element("span", { class: index === null ? "outline one" : "outline", "aria-hidden": "true" });
      frame.style.left = `${first.offsetLeft + inset}px`;
      frame.style.top = `${first.offsetTop + inset}px`;
      frame.style.width = `${last.offsetLeft + last.offsetWidth - first.offsetLeft - 2 * inset}px`;
      frame.style.height = `${last.offsetTop + last.offsetHeight - first.offsetTop - 2 * inset}px`;
      plane.grid.append(frame);
    }

    letGo() {
      this.pin = this.hover = null;
      this.paint();
    }

    // -- stepping

    go(step) {
      this.step = Math.min(Math.max(step, 0), this.steps);
      this.hasStepped = true;
      this.pin = this.hover = null;
      this.show(this.follow());
      if (this.step === this.steps) this.pause();
    }

    show(moved) {
      if (moved.length) this.render(moved);
      else this.update();
    }

    /** Bring what the step is about into the part that is drawn; the axes that moved. */
    follow() {
      if (this.step === 0) return [];
      const { g, y } = this.model;
      const output = (this.step - 1) % (y ? y.length : g.K), k = output % g.K, f = Math.floor(output / g.K);
      const [oh, ow, n] = columnOf(g, k);
      const wanted = [["n", n], ["k", k], ["oh", oh], ["ow", ow], ["h", oh * g.SH, g.KH], ["w", ow * g.SW, g.KW]];
      if (y) wanted.push(["f", f]);
      if (this.topic === "max-pool") wanted.push(["c", f], ["r", f * g.KH * g.KW, g.KH * g.KW]);
      return wanted.filter(([axis, from, length]) => this.bring(axis, from, length)).map(([axis]) => axis);
    }

    bring(axis, from, length = 1) {
      const span = this.spans[axis], before = span.start;
      if (from < span.start) span.start = Math.max(0, from + length - span.size);
      else if (from + length > span.start + span.size) span.start = Math.min(from, span.total - span.size);
      return span.start !== before;
    }

    toggle() {
      if (this.timer) return this.pause();
      if (this.step === this.steps) this.go(0);
      this.words.setAttribute("aria-live", "off");
      this.timer = setInterval(() => this.go(this.step + 1), Math.min(1100, Math.max(150, 40000 / this.steps)));
      this.playIcon("pause", "Pause");
    }

    pause() {
      clearInterval(this.timer);
      this.timer = null;
      this.words.setAttribute("aria-live", "polite");
      this.playIcon("play", "Play");
    }

    playIcon(name, label) {
      this.playButton.replaceChildren(icon(name));
      this.playButton.setAttribute("aria-label", label);
      this.playButton.title = label;
    }

    // -- pointer and keys

    listen() {
      this.stage.addEventListener("pointerover", (event) => {
        if (event.pointerType !== "touch") this.point(event.target.closest("[data-kind]"));
      });
      this.stage.addEventListener("pointerleave", () => this.point(null));
      this.stage.addEventListener("focusin", (event) => this.isDrawing || this.point(event.target.closest("[data-kind]")));
      this.stage.addEventListener("focusout", () => this.isDrawing || this.point(null));
      this.stage.addEventListener("click", (event) => this.togglePin(event.target.closest("[data-kind]")));
      document.addEventListener("keydown", (event) => this.press(event));
      window.addEventListener("resize", () => this.paint());
    }

    point(cell) {
      const before = this.hover;
      this.hover = cell ? chosenBy(cell) : null;
      const isSame = before && this.hover && before.kind === this.hover.kind && before.key === this.hover.key;
      if (!isSame && !(before === null && this.hover === null)) this.paint();
    }

    togglePin(cell) {
      if (!cell) return;
      const chosen = chosenBy(cell), isSame = this.pin?.kind === chosen.kind && this.pin.key === chosen.key;
      this.pause();
      this.pin = this.hover = isSame ? null : chosen;
      this.focus(cell, { preventScroll: true });
      this.show(this.pin ? this.bringCells(chosen) : []);
    }

    /** Where none of the matrix's lit cells is drawn, move to the first; the axes that moved. */
    bringCells({ kind, key }) {
      const { cell: cells } = lightOf(this.model, kind, key);
      const [first] = cells;
      if (first === undefined || this.drawn(cells)) return [];
      const wanted = [["r", Math.floor(first / this.model.g.K)], ["k", first % this.model.g.K]];
      return wanted.filter(([axis, index]) => this.bring(axis, index)).map(([axis]) => axis);
    }

    drawn(cells) {
      return [...cells].filter((cell) => this.panes.cols.cells.has(cell)).length;
    }

    press(event) {
      if (event.altKey || event.ctrlKey && !["Home", "End"].includes(event.key) || event.metaKey) return;
      const cell = event.target.place ? event.target : null;
      const isForm = event.target.closest("input, select, textarea");
      const isButton = event.target.closest("button, summary, a");
      const act = {
        Escape: () => this.letGo(),
        " ": () => !isForm && !isButton && (this.toggle(), true),
        Enter: () => cell && (this.togglePin(cell), true),
        ArrowLeft: () => this.arrow(cell, isForm, -1, 0), ArrowRight: () => this.arrow(cell, isForm, 1, 0),
        ArrowUp: () => cell && this.move(cell, 0, -1), ArrowDown: () => cell && this.move(cell, 0, 1),
        Home: () => cell && this.jump(cell, event.ctrlKey, false), End: () => cell && this.jump(cell, event.ctrlKey, true),
      }[event.key];
      if (act && act()) event.preventDefault();
    }

    arrow(cell, isForm, dx, dy) {
      if (cell) return this.move(cell, dx, dy);
      if (isForm) return false;
      this.pause();
      this.go(this.step + dx);
      return true;
    }

    move(cell, dx, dy) {
      const { plane, x, y } = cell.place;
      const next = plane.lines[y + dy]?.[x + dx];
      const axis = dx ? plane.layout.columns : plane.layout.rows;
      // the numbers before the part shown come before the header
      const isHidden = this.spans[axis].start > 0 && cell.dataset.panel && next && !next.dataset.panel;
      if (next && !isHidden) this.focus(next);
      else if (next === undefined || isHidden) this.turnPage(cell, dx, dy);
      return true;
    }

    /** Beyond the edge of the part shown: move that part, and the focus with it. */
    turnPage(cell, dx, dy) {
      const { plane, x, y } = cell.place;
      const axis = dx ? plane.layout.columns : plane.layout.rows, span = this.spans[axis];
      const target = (dx + dy > 0) ? span.start + span.size : span.start - 1;
      if (target < 0 || target >= span.total) return;
      this.bring(axis, target);
      this.render([axis]);
      const same = this.panes[plane.name].planes
        .find(({ first, second }) => first === plane.first && second === plane.second);
      const shift = target - span.start, head = plane.lines[0].length - plane.columns.length;
      const top = plane.lines.length - plane.rows.length;
      this.focus(same.lines[dy ? shift + top : y][dx ? shift + head : x]);
    }

    jump(cell, isWhole, isEnd) {
      const { lines } = cell.place.plane;
      const line = isWhole ? lines.at(isEnd ? -1 : 0) : lines[cell.place.y];
      this.focus(isEnd ? line.at(-1) : line.find(Boolean));
      return true;
    }

    focus(cell, options = {}) {
      this.rove(cell);
      cell.focus(options);
    }

    /** Keep one tab stop for each grid: the number that was last visited. */
    rove(cell) {
      cell.place.plane.stop.tabIndex = -1;
      cell.place.plane.stop = cell;
      cell.tabIndex = 0;
    }

    // -- Python's numbers

    check() {
      const computed = topics[this.topic].checks(this.model);
      // sums differ by their order, so by as much as their largest terms allow
      const tolerance = TOLERANCE * ["x", "weight", "upstream"].map((name) => largest(this.model[name] ?? [1]) || 1)
        .reduce((a, b) => a * b);
      const faults = Object.entries(computed)
        .map(([name, values]) => disagreement(name, values, this.data.expected[name], tolerance)).filter(Boolean);
      if (faults.length) {
        this.alarm.hidden = false;
        this.alarm.textContent =
          `The numbers of this page and those of cnncli disagree; do not trust the page. ${faults.join(" ")}`;
        this.verdict.textContent = "The check against the numbers of cnncli failed.";
      } else {
        this.verdict.textContent =
          `Checked on opening against the numbers that cnncli computed: ${Object.keys(computed).join(", ")} agree.`;
      }
    }
  }

  const chosenBy = (cell) => ({ kind: cell.dataset.kind, key: Number(cell.dataset.key) });

  /** The part [from, from + length) of an axis within what is shown, counted from its start. */
  function clip(from, length, span) {
    const start = Math.max(from - span.start, 0), end = Math.min(from + length - span.start, span.size);
    return start < end ? [start, end] : null;
  }

  function around(frames) {
    const h = Math.min(...frames.map((frame) => frame.h)), w = Math.min(...frames.map((frame) => frame.w));
    const height = Math.max(...frames.map((frame) => frame.h + frame.height)) - h;
    const width = Math.max(...frames.map((frame) => frame.w + frame.width)) - w;
    return { h, w, height, width };
  }

  const noteOf = (name, g) =>
    panels[name].note ?? (name === "x" && g.top + g.bottom + g.left + g.right ? "hatched: padding" : "");

  /** How a panel writes its numbers: as many decimals as they need, and how dark each cell is. */
  function formatOf(values, { isDense, isShaded }) {
    const most = largest(values);
    const isWhole = values.filter(Number.isFinite).every(Number.isInteger);
    const decimals = isWhole || most >= (isDense ? 100 : 10000) ? 0 : most >= 100 ? 1 : most >= 0.1 ? 2 : 4;
    const isExtreme = most >= 1e7 || (most > 0 && most < 1e-3);
    const text = (number) => {
      if (number === undefined) return "\u00b7"; // not yet
      if (number === null) return ""; // never
      if (!Number.isFinite(number)) return written(number);
      if (isExtreme) return number === 0 ? "0" : number.toExponential(2);
      return Number.isInteger(number) ? String(number || 0) : number.toFixed(decimals);
    };
    const width = values.reduce((longest, number) => Math.max(longest, text(number).length), 1);
    const shade = (number) =>
      isShaded && Number.isFinite(number) && most ? Math.min(1, Math.abs(number) / most).toFixed(3) : 0;
    return { text, width, shade };
  }

  function disagreement(name, here, expected, tolerance) {
    const length = Array.isArray(expected) ? expected.length : "none";
    if (length !== here.length) return `${name}: ${plural(here.length, "number")} here, ${length} from cnncli.`;
    const at = here.findIndex((value, index) => !isClose(value, Number(expected[index]), tolerance));
    if (at < 0) return null;
    return `${name}: at position ${at}, ${written(here[at])} here, ${written(Number(expected[at]))} from cnncli.`;
  }

  function isClose(a, b, tolerance) {
    return Object.is(a, b) || a === b || Math.abs(a - b) <= tolerance;
  }

  /** Arrays come as {shape, values}; NaN and infinities as text. */
  function readData() {
    const data = JSON.parse(document.getElementById("page-data").textContent);
    for (const array of Object.values(data.arrays)) if (array) array.values = array.values.map(Number);
    return data;
  }

  const pages = { explain: ExplainPage };

  const root = document.getElementById("page");
  try {
    const data = readData();
    new pages[data.page](root, data);
  } catch (error) {
    root.replaceChildren(element("div", { class: "alarm", role: "alert", id: "alarm" },
      `The numbers embedded in this page cannot be read (${error.message}). Write the page again with cnncli.`));
  }
})();
