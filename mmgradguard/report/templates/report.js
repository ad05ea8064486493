(function () {
  'use strict';
  var figures = JSON.parse(document.getElementById('figures').textContent);
  // no button that sends a run's data anywhere: plotly.js has one by default
  var config = {
    responsive: true, displaylogo: false, doubleClick: 'reset',
    showSendToCloud: false, plotlyServerURL: '',
    modeBarButtons: [['zoom2d', 'pan2d', 'resetScale2d', 'toImage']]
  };
  var charts = Object.keys(figures).map(function (id) {
    var div = document.getElementById('chart-' + id);
    Plotly.newPlot(div, figures[id].data, figures[id].layout, config);
    return div;
  });
  // what a click on a marker jumps to
  var targets = {incidents: 'incident-', events: 'event-'};
  // zooming one chart in time zooms them all
  var busy = false;
  charts.forEach(function (source) {
    source.on('plotly_relayout', function (change) {
      var range = source.layout.xaxis.range;
      var isZoom = 'xaxis.range[0]' in change || 'xaxis.range' in change || 'xaxis.autorange' in change;
      if (busy || !isZoom) { return; }
      busy = true;
      var update = change['xaxis.autorange'] ? {'xaxis.autorange': true} : {'xaxis.range': range.slice()};
      Promise.all(charts.filter(function (other) { return other !== source; }).map(function (other) {
        return Plotly.relayout(other, update);
      })).then(function () { busy = false; }, function () { busy = false; });
    });
    source.on('plotly_click', function (event) {
      var point = event.points[0];
      if (point && point.data.meta in targets) {
        window.location.hash = targets[point.data.meta] + point.customdata;
      }
    });
  });
}());
