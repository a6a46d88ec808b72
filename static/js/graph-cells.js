// Where the cells of a large graph stand. The server sends a head of 20 bytes - first id, format,
// nodes, arcs - and then three columns of whole numbers: the offset of each node's id, its level,
// its place in the level. Levels stand side by side; one that is long takes several columns. A cell
// is found from a point by arithmetic, whatever the number of nodes.
(function () {
  "use strict";
  const HEAD = 20;
  const LEAST_ROWS = 8;

  class Cells {
    constructor(buffer, aspect) {
      const head = new DataView(buffer);
      const count = head.getUint32(12, true);
      const column = (place) => new Uint32Array(buffer.slice(HEAD + 4 * count * place, HEAD + 4 * count * (place + 1)));
      this.count = count;
      this.levels = column(1);
      this.orders = column(2);
      this.sizes = this.countLevels();
      this.placeLevels(aspect);
    }

    countLevels() {
      let levels = 0;
      for (const level of this.levels) if (level >= levels) levels = level + 1;
      const sizes = new Uint32Array(levels);
      for (const level of this.levels) sizes[level] += 1;
      return sizes;
    }

    placeLevels(aspect) {
      const levels = this.sizes.length;
      const most = Math.max(LEAST_ROWS, Math.ceil(Math.sqrt(this.count / aspect)));
      this.starts = new Uint32Array(levels + 1); // the first node of each level
      this.columns = new Uint32Array(levels + 1); // its first column
      this.heights = new Uint32Array(levels); // how many nodes stand in each of its columns
      for (let level = 0; level < levels; level += 1) {
        const gap = level ? 1 : 0;
        this.starts[level + 1] = this.starts[level] + this.sizes[level];
        this.columns[level] += gap;
        const wide = Math.ceil(this.sizes[level] / most);
        this.heights[level] = Math.ceil(this.sizes[level] / wide);
        this.columns[level + 1] = this.columns[level] + wide;
      }
      this.width = Math.max(this.columns[levels], 1);
      this.rows = this.heights.reduce((high, each) => Math.max(high, each), 1);
      // With very many short levels most columns would be empty: then one level follows the other.
      this.isPacked = this.width > 4 * Math.ceil(this.count / most) + 8;
      if (this.isPacked) this.rows = most;
      if (this.isPacked) this.width = Math.max(Math.ceil(this.count / most), 1);
      this.inOrder = new Uint32Array(this.count);
      for (let node = 0; node < this.count; node += 1) {
        this.inOrder[this.starts[this.levels[node]] + this.orders[node]] = node;
      }
    }

    // The column and row of a node.
    at(node) {
      const level = this.levels[node];
      const place = this.isPacked ? this.starts[level] + this.orders[node] : this.orders[node];
      const first = this.isPacked ? 0 : this.columns[level];
      const high = this.isPacked ? this.rows : this.heights[level];
      return [first + Math.floor(place / high), place % high];
    }

    // The node in a column and row; -1 for none.
    pick(column, row) {
      if (column < 0 || row < 0 || row >= this.rows || column >= this.width) return -1;
      if (this.isPacked) {
        const place = column * this.rows + row;
        return place < this.count ? this.inOrder[place] : -1;
      }
      const level = this.levelOf(column);
      const high = this.heights[level];
      const order = (column - this.columns[level]) * high + row;
      const isThere = column >= this.columns[level] && row < high && order < this.sizes[level];
      return isThere ? this.inOrder[this.starts[level] + order] : -1;
    }

    levelOf(column) {
      let low = 0;
      let high = this.sizes.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (this.columns[middle] <= column) low = middle;
        else high = middle - 1;
      }
      return low;
    }

    // The node that an arrow key leads to from another.
    next(node, key) {
      const level = this.levels[node];
      const step = { ArrowUp: -1, ArrowDown: 1 }[key];
      if (step) {
        const order = Math.min(Math.max(this.orders[node] + step, 0), this.sizes[level] - 1);
        return this.inOrder[this.starts[level] + order];
      }
      const other = level + { ArrowLeft: -1, ArrowRight: 1 }[key];
      if (other < 0 || other >= this.sizes.length) return node;
      const part = this.orders[node] / this.sizes[level];
      return this.inOrder[this.starts[other] + Math.floor(part * this.sizes[other])];
    }
  }

  window.PilotageCells = Cells;
})();
