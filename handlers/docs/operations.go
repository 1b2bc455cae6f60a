package docs

// operation describes a route of the API.
type operation struct {
	method, path string // as in the route table
	tag          string // one of tags
	about        string // one sentence
	query        string // parameters, separated by spaces
	body         string // type, see schemaOf
	form         bool   // the body is a form with files
	status       int    // of success; 0 for 200
	answer       string // type of a JSON response
	kind         string // media type of any other response
	try          string // example URL that succeeds on a fresh server; empty if none
}

// Tags group operations, in the order of the page.
const (
	tagRuns     = "Runs"
	tagMeasures = "Measures"
	tagReports  = "Reports"
	tagSweeps   = "Sweeps"
	tagDatasets = "Datasets"
	tagPlay     = "Playground"
	tagServer   = "Server"
	tagPages    = "Pages"
)

var tags = []string{tagRuns, tagMeasures, tagReports, tagSweeps, tagDatasets, tagPlay, tagServer}

// types are the named types of requests and responses.
var types = map[string]string{
	"Error":  "{error: text, fields?: {*: text}, request?: text}",
	"Config": `{dataset: text, model: text, preset: text, engine: text, steps: int, batch: int, seed: int, widths: [int], m: int, k: int, d: int, lr: number}`,
	"Run": `{id: text, name: text, notes: text, config: Config, created: text, tags: [text], state: text, step: int, checkpoint: int, resumed: int, attempt: int, engine: text, precision?: text,
		engine_why: text, parameters: int, images_per_second: value, seconds_left: value, started: text, updated: text, ended: text, reason: text, revision: text}`,
	"Interval":   "{value: value, low: value, high: value}",
	"Field":      "{name: text, label: text, group: text, help: text, kind?: text, choices?: [text]|null, default?: any, source?: text, symbol?: text, unit?: text, min?: any, max?: any}",
	"Evaluation": "{state: text, effort: text, said?: text, reason?: text, asked?: text, started?: text, ended?: text}",
	"Metrics": `{discrete: bool, rows: int, latents: int, factors: [text], values: [int], infom: value, infoe: value, infoc: value, infoe_heldout: value, infoe_shuffled: value,
		nmi: [[value]], active_latents: [bool], kept_factors: [int], dci: {trees: int, rf_onehot: DCI, rf_onehot_slotsum: DCI, rf_slots: DCI}}`,
	"DCI":          "{D: value, I: value, C: value}",
	"FieldScores":  "{discrete: bool, rows: int, seed: int, kept_factors: [int], scores: {*: value}, problems?: {*: text}}",
	"Scores":       "{version: int, step: int, images: int, seed: int, psnr: value, psnr_interval?: Interval|null, metrics?: Metrics|null, field?: FieldScores|null, engine: text, seconds: number}",
	"Points":       "{attempt: int, resumed: int, head: int, last: int, count: int, series: {*: [[value]]}, smoothed?: {*: [[value]]}}",
	"Image":        "{index: int, classes: [int], values: [text]}",
	"Dataset":      "{name: text, title: text, h: int, w: int, c: int, len: int, factors: [{name: text, values: [any]|null}], complete: bool, about: text, note: text, licence: text, citation: text}",
	"DatasetState": "{name: text, state: text, kind: text, part: text, bytes: int, reason: text, why: text, work: {stage: text, what: text, done: number, of: number, unit: text, error: text, damaged: text}}",
	"Checkpoint":   "{key: text, title: text, run: text, step: int, config: Config, saved: text, card?: any}",
	"Swap":         "{slot: int, codes: [int], image: text, changed: value, mean: value, psnr: value}",
	"Sweep":        "{id: text, name: text, created: text, active: bool, runs: int, done: int, failed: int, live: int, waiting: int, steps: int, all_steps: int, plan: any, items: [any]|null}",
	"Steps":        "{steps: [int]|null}",
	"Truth":        "{factors: [int], index: int, psnr: value, reconstruction: value, before: value, hit: bool, original: text}",
}

const (
	demo  = "shipped-hrr-small"
	state = "a b codes bcodes order"
)

// operations lists each API route once.
var operations = []operation{
	{method: "GET", path: "/api/runs", tag: tagRuns, about: "List the runs that match a query, with their latest values and scores.", query: "q sort offset limit", answer: "{runs: [Run], matching: int, total: int}", try: "/api/runs?limit=2"},
	{method: "POST", path: "/api/runs", tag: tagRuns, about: "Start a run or, with external, register a run that another program logs.", body: "{name?: text, config?: any, external?: {*: text|number|bool}, executor?: text, slurm?: [text]}", status: 201, answer: "Run"},
	{method: "GET", path: "/api/runs.csv", tag: tagRuns, about: "The list of runs as CSV.", query: "q sort cols run", kind: "text/csv", try: "/api/runs.csv"},
	{method: "POST", path: "/api/runs/bulk", tag: tagRuns, about: "Apply an action to many runs.", body: "{do: text, tag?: text, runs?: [text], q?: text, effort?: text, replace?: bool}", answer: "{done: [text]|null, failed: [{run: text, error: text}]|null}"},
	{method: "GET", path: "/api/runs/fields", tag: tagRuns, about: "Fields for queries, sorting and columns.", answer: "{fields: [Field]}", try: "/api/runs/fields"},
	{method: "GET", path: "/api/fields", tag: tagRuns, about: "Every hyperparameter of a model, with its default on a dataset.", query: "dataset model preset", answer: "{fields: [Field]}", try: "/api/fields?model=hrr&preset=tiny&dataset=shapes3d-synthetic"},
	{method: "GET", path: "/api/runs/{id}", tag: tagRuns, about: "One run.", answer: "Run", try: "/api/runs/" + demo},
	{method: "PATCH", path: "/api/runs/{id}", tag: tagRuns, about: "Rename a run or set its notes.", body: "{name?: text, notes?: text}", answer: "Run"},
	{method: "DELETE", path: "/api/runs/{id}", tag: tagRuns, about: "Delete a run and its folder.", status: 204},
	{method: "POST", path: "/api/runs/{id}/stop", tag: tagRuns, about: "Stop a run after it saves a checkpoint.", status: 202, answer: "Run"},
	{method: "POST", path: "/api/runs/{id}/resume", tag: tagRuns, about: "Resume a run from its checkpoint, up to steps in total.", body: "{steps?: int}", status: 202, answer: "Run"},
	{method: "GET", path: "/api/runs/{id}/verdict", tag: tagRuns, about: "The verdict on a run's progress.", answer: "{kind: text, title: text, rule: text, why: text, facts: [text]|null, step: int}", try: "/api/runs/" + demo + "/verdict"},
	{method: "GET", path: "/api/runs/{id}/points", tag: tagRuns, about: "Measured points of a run, by series.", query: "since until names columns smooth only", answer: "Points", try: "/api/runs/" + demo + "/points?names=total&columns=5"},
	{method: "POST", path: "/api/runs/{id}/points", tag: tagRuns, about: "Log points of an external run.", body: "{points: [{step: int, time?: text, values: {*: value}}]}", answer: "{added: int, skipped: int, last: int}"},
	{method: "GET", path: "/api/runs/{id}/points.csv", tag: tagRuns, about: "Every stored point as CSV.", query: "names", kind: "text/csv", try: "/api/runs/" + demo + "/points.csv?names=total"},
	{method: "GET", path: "/api/runs/{id}/points.parquet", tag: tagRuns, about: "Every stored point as Parquet.", kind: "application/vnd.apache.parquet", try: "/api/runs/" + demo + "/points.parquet"},
	{method: "GET", path: "/api/runs/{id}/log", tag: tagRuns, about: "The last lines of the log.", query: "lines", kind: "text/plain", try: "/api/runs/" + demo + "/log"},
	{method: "GET", path: "/api/runs/{id}/samples", tag: tagRuns, about: "Steps with a sheet of reconstructions.", answer: "Steps", try: "/api/runs/" + demo + "/samples"},
	{method: "GET", path: "/api/runs/{id}/samples/{step}.png", tag: tagRuns, about: "A sheet of reconstructions.", kind: "image/png"},
	{method: "GET", path: "/api/runs/{id}/checkpoints", tag: tagRuns, about: "Steps with a checkpoint.", answer: "Steps", try: "/api/runs/" + demo + "/checkpoints"},
	{method: "GET", path: "/api/runs/{id}/checkpoints/{step}.safetensors", tag: tagRuns, about: "Download a checkpoint.", kind: "application/octet-stream"},
	{method: "GET", path: "/api/runs/{id}/files/{name}", tag: tagRuns, about: "Files that an evaluation wrote in addition to the scores.", kind: "application/octet-stream"},
	{method: "GET", path: "/api/runs/{id}/bundle.zip", tag: tagRuns, about: "Export the model as a bundle for other programs.", query: "step license", kind: "application/zip"},

	{method: "GET", path: "/api/runs/{id}/scores", tag: tagMeasures, about: "Scores of the run's evaluation.", answer: "Scores", try: "/api/runs/" + demo + "/scores"},
	{method: "GET", path: "/api/runs/{id}/evaluate", tag: tagMeasures, about: "State of the run's evaluation.", answer: "Evaluation", try: "/api/runs/" + demo + "/evaluate"},
	{method: "POST", path: "/api/runs/{id}/evaluate", tag: tagMeasures, about: "Evaluate the newest checkpoint.", body: "{effort?: text, now?: bool, replace?: bool}", status: 202, answer: "Evaluation"},
	{method: "DELETE", path: "/api/runs/{id}/evaluate", tag: tagMeasures, about: "Cancel an evaluation.", status: 202, answer: "Evaluation"},
	{method: "POST", path: "/api/metrics", tag: tagMeasures, about: "Compute all metrics of an uploaded file of latents and factors.", form: true, body: "{file: text, latents?: text, factors?: text, as?: text, trees?: int, seed?: int}", answer: "Metrics"},

	{method: "GET", path: "/api/report/{file}", tag: tagReports, about: "A file of the report on runs, e.g. results.json, summary.csv or report.zip.", query: "runs sweep rule bundles progress", kind: "application/octet-stream", try: "/api/report/summary.csv?runs=" + demo},
	{method: "GET", path: "/api/report/progress/{name}", tag: tagReports, about: "Progress of a report download.", answer: "{name: text, file: text, number: int, of: int, share: number, ended: bool, failed: bool}"},
	{method: "GET", path: "/api/compare/curves", tag: tagReports, about: "A series of each run, and the mean of each group.", query: "runs series smooth columns clock", answer: "{series: text, groups: [{label: text, dataset: text, color: any, batch: int, mean: any, members: [any]}]}", try: "/api/compare/curves?series=total&columns=5&runs=" + demo},

	{method: "GET", path: "/api/sweeps", tag: tagSweeps, about: "Every sweep.", answer: "{sweeps: [Sweep]}", try: "/api/sweeps"},
	{method: "POST", path: "/api/sweeps", tag: tagSweeps, about: "Start a sweep.", body: "any", status: 201, answer: "Sweep"},
	{method: "POST", path: "/api/sweeps/estimate", tag: tagSweeps, about: "Estimate the duration of a plan.", body: "any", answer: "any"},
	{method: "GET", path: "/api/sweeps/{id}", tag: tagSweeps, about: "One sweep.", answer: "Sweep"},
	{method: "DELETE", path: "/api/sweeps/{id}", tag: tagSweeps, about: "Delete a sweep and keep its runs.", status: 204},
	{method: "POST", path: "/api/sweeps/{id}/{what}", tag: tagSweeps, about: "Stop, resume or retry a sweep.", status: 202, answer: "Sweep"},

	{method: "GET", path: "/api/datasets", tag: tagDatasets, about: "Available datasets, and the state of every known dataset.", answer: "{datasets: [Dataset], catalogue: [DatasetState]}", try: "/api/datasets"},
	{method: "POST", path: "/api/datasets", tag: tagDatasets, about: "Add a dataset.", body: "{from?: text, name?: text, skip_broken?: bool}", status: 202, answer: "DatasetState"},
	{method: "GET", path: "/api/datasets/{name}", tag: tagDatasets, about: "One dataset.", answer: "Dataset", try: "/api/datasets/shapes3d-synthetic"},
	{method: "DELETE", path: "/api/datasets/{name}", tag: tagDatasets, about: "Delete a dataset's packed and downloaded files.", status: 204},
	{method: "GET", path: "/api/datasets/{name}/state", tag: tagDatasets, about: "State of a dataset.", answer: "DatasetState", try: "/api/datasets/shapes3d-synthetic/state"},
	{method: "POST", path: "/api/datasets/{name}/stop", tag: tagDatasets, about: "Stop adding a dataset; partial work is kept.", status: 202, answer: "DatasetState"},
	{method: "GET", path: "/api/datasets/{name}/images/{index}.png", tag: tagDatasets, about: "An image of the dataset.", kind: "image/png", try: "/api/datasets/shapes3d-synthetic/images/5.png"},
	{method: "GET", path: "/api/datasets/{name}/images.png", tag: tagDatasets, about: "An image by index or classes.", query: "index classes", kind: "image/png", try: "/api/datasets/shapes3d-synthetic/images.png?index=5"},
	{method: "GET", path: "/api/datasets/{name}/images/{index}.json", tag: tagDatasets, about: "The factors of an image.", query: "near", answer: "Image", try: "/api/datasets/shapes3d-synthetic/images/5.json"},
	{method: "GET", path: "/api/datasets/{name}/images.json", tag: tagDatasets, about: "The factors of an image, by index or classes.", query: "index classes near", answer: "Image", try: "/api/datasets/shapes3d-synthetic/images.json?index=5"},
	{method: "GET", path: "/api/datasets/{name}/strip/{factor}.png", tag: tagDatasets, about: "A strip of images, one per value of a factor.", query: "index", kind: "image/png", try: "/api/datasets/shapes3d-synthetic/strip/shape.png?index=5"},
	{method: "GET", path: "/api/datasets/{name}/grid.png", tag: tagDatasets, about: "A grid of random images.", query: "n columns seed", kind: "image/png", try: "/api/datasets/shapes3d-synthetic/grid.png?n=4"},
	{method: "GET", path: "/api/datasets/{name}/grid.json", tag: tagDatasets, about: "The images of the grid.", query: "n seed", answer: "{images: [Image], seed: int}", try: "/api/datasets/shapes3d-synthetic/grid.json?n=4"},

	{method: "GET", path: "/api/play", tag: tagPlay, about: "Checkpoints that can be opened.", answer: "{checkpoints: [Checkpoint]}", try: "/api/play"},
	{method: "GET", path: "/api/play/{checkpoint}", tag: tagPlay, about: "A checkpoint: its slots, codes and images.", answer: "{checkpoint: Checkpoint, discrete: bool, engine: text, m: int, k: int, d: int, h: int, w: int, c: int}", try: "/api/play/" + demo},
	{method: "GET", path: "/api/play/{checkpoint}/usage", tag: tagPlay, about: "Code usage of each slot, and the factors it carries; 202 while being computed.", answer: "{state: text, usage?: any, done?: int, of?: int, early?: any}", try: "/api/play/" + demo + "/usage"},
	{method: "POST", path: "/api/play/{checkpoint}/encode", tag: tagPlay, about: "Encode an image of the dataset or an uploaded image.", body: "{index?: int, classes?: [int], random?: bool}", answer: "{index?: int, classes?: [int]|null, codes: [int], psnr: value, original: text}"},
	{method: "POST", path: "/api/play/{checkpoint}/decode", tag: tagPlay, about: "Decode 1 to 64 tuples of codes.", body: "{codes: [[int]]}", answer: "{images: [text]}"},
	{method: "GET", path: "/api/play/{checkpoint}/palette", tag: tagPlay, about: "Codes available for a slot.", query: "codes slot sort filter search offset limit", answer: "any", try: "/api/play/" + demo + "/palette?slot=1&codes=0.0.0.0.0.0.0.0.0&limit=2"},
	{method: "GET", path: "/api/play/{checkpoint}/swaps", tag: tagPlay, about: "Image A with each slot of B, and the interpolation from A to B.", query: state, answer: "{codes: [int], bcodes: [int], order: [int], swaps: [Swap], strip: [Swap]}", try: "/api/play/" + demo + "/swaps"},
	{method: "GET", path: "/api/play/{checkpoint}/truth", tag: tagPlay, about: "Compare a swap with the dataset's image of the intended result.", query: state + " slots", answer: "Truth", try: "/api/play/" + demo + "/truth?slots=8"},
	{method: "GET", path: "/api/play/{checkpoint}/check", tag: tagPlay, about: "Decode a tuple of codes and encode it again.", query: "codes", answer: "{codes: [int], again: [int], kept: int, moved: [int]|null}", try: "/api/play/" + demo + "/check?codes=0.0.0.0.0.0.0.0.0"},
	{method: "GET", path: "/api/play/{checkpoint}/slots", tag: tagPlay, about: "Names of slots and codes.", query: state, answer: "{counted: any, slots: [any], groups: [any]|null}", try: "/api/play/" + demo + "/slots"},
	{method: "GET", path: "/api/play/{checkpoint}/original.png", tag: tagPlay, about: "An image of the dataset.", query: "index classes x", kind: "image/png", try: "/api/play/" + demo + "/original.png?index=5"},
	{method: "GET", path: "/api/play/{checkpoint}/sheet.png", tag: tagPlay, about: "Swaps and interpolation as one figure.", query: state, kind: "image/png", try: "/api/play/" + demo + "/sheet.png"},
	{method: "GET", path: "/api/play/{checkpoint}/strip.gif", tag: tagPlay, about: "The interpolation as an animation.", query: state, kind: "image/gif", try: "/api/play/" + demo + "/strip.gif"},
	{method: "GET", path: "/api/play/{checkpoint}/codes.json", tag: tagPlay, about: "The state of the playground.", query: state, answer: "{checkpoint: text, run: text, step: int, dataset: text, m: int, k: int, codes: [int], bcodes: [int], order: [int], address: text}", try: "/api/play/" + demo + "/codes.json"},
	{method: "GET", path: "/api/play/{checkpoint}/figure.{kind:svg|png|pdf}", tag: tagPlay, about: "The paper's swap figure.", query: state + " n seed", kind: "application/octet-stream", try: "/api/play/" + demo + "/figure.svg"},
	{method: "GET", path: "/api/play/{checkpoint}/animation.{kind:gif|png}", tag: tagPlay, about: "An animation from A to B, slot by slot, and back.", query: state + " direction", kind: "application/octet-stream", try: "/api/play/" + demo + "/animation.gif"},
	{method: "GET", path: "/api/play/{checkpoint}/images", tag: tagPlay, about: "Seeded random images of the dataset with their codes, as returned by encode.", query: "n seed", answer: "any", try: "/api/play/" + demo + "/images"},
	{method: "GET", path: "/api/play/{checkpoint}/atlas", tag: tagPlay, about: "The meaning of each slot.", answer: "any", try: "/api/play/" + demo + "/atlas"},
	{method: "GET", path: "/api/play/{checkpoint}/atlas/{slot}", tag: tagPlay, about: "The meanings of a slot's codes.", answer: "any", try: "/api/play/" + demo + "/atlas/0"},
	{method: "GET", path: "/api/play/{checkpoint}/atlas/{slot}/{code}", tag: tagPlay, about: "The meaning of one code.", answer: "any"},
	{method: "GET", path: "/api/play/{checkpoint}/names", tag: tagPlay, about: "User-given names of slots and codes.", answer: "{names: any}", try: "/api/play/" + demo + "/names"},
	{method: "PUT", path: "/api/play/{checkpoint}/names", tag: tagPlay, about: "Name slots and codes.", body: "any", answer: "any"},
	{method: "GET", path: "/api/play/{checkpoint}/weights.bin", tag: tagPlay, about: "Weights to run the model in the browser.", kind: "application/octet-stream", try: "/api/play/" + demo + "/weights.bin"},
	{method: "GET", path: "/api/play/{checkpoint}/probe.bin", tag: tagPlay, about: "The dataset's probe.", kind: "application/octet-stream"},
	{method: "GET", path: "/api/play/{checkpoint}/frozen.html", tag: tagPlay, about: "The playground as a single HTML file.", kind: "text/html"},
	{method: "GET", path: "/img/{checkpoint}/{file}", tag: tagPlay, about: "The image decoded from a tuple of codes; file is CODES.png.", query: "x download", kind: "image/png", try: "/img/" + demo + "/0.0.0.0.0.0.0.0.0.png"},

	{method: "GET", path: "/api/runs/{id}/alerts", tag: tagRuns, about: "Alerts of a run.", answer: "{alerts: [any]}", try: "/api/runs/" + demo + "/alerts"},
	{method: "GET", path: "/api/sweeps/{id}/explore", tag: tagSweeps, about: "The hyperparameters that vary in a sweep, and their effect on a score.", query: "metric", answer: "any"},
	{method: "GET", path: "/api/alerts", tag: tagServer, about: "Alert settings and the latest alerts.", query: "after limit", answer: "{plan: any, alerts: [any]}", try: "/api/alerts"},
	{method: "POST", path: "/api/alerts/test", tag: tagServer, about: "Send a test alert.", status: 204},
	{method: "GET", path: "/api/system", tag: tagServer, about: "Engine, hardware, storage and version.", answer: "{engine: text, engine_why: text, threads: int, bf16: text, data: text, disk_free: int, version: text, go: text, uptime_seconds: number}", try: "/api/system"},
	{method: "GET", path: "/version", tag: tagServer, about: "Release, revision and platform of the build.", answer: "{release: text, revision: text, go: text, platform: text}", try: "/version"},
	{method: "GET", path: "/metrics", tag: tagServer, about: "Prometheus.", kind: "text/plain", try: "/metrics"},
	{method: "GET", path: "/healthz", tag: tagServer, about: "Liveness: the process is running.", kind: "text/plain", try: "/healthz"},
	{method: "GET", path: "/readyz", tag: tagServer, about: "Readiness: the server can handle requests.", kind: "text/plain", try: "/readyz"},
	{method: "GET", path: "/openapi.json", tag: tagServer, about: "This API description.", answer: "{openapi: text, paths: any}", try: "/openapi.json"},
}
