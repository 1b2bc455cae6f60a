// Measures only the convolutions of the paper's network with oneDNN: for every layer of encoder and decoder the forward pass and the
// gradients of input and kernel, in oneDNN's preferred layouts, without conversion between layers. This is a lower bound of the time
// of a training step in any framework based on oneDNN.
//
//   g++ -O2 -o convolutions tools/onednn/convolutions.cpp -ldnnl      (Debian: libdnnl-dev)
//   tools/bench-pairs.sh -p small -b 32 -- ./convolutions --preset PRESET --batch BATCH --seconds SECONDS
//
// --type bf16 uses bfloat16 operands and results; oneDNN fails if the processor does not support it. OMP_NUM_THREADS sets the threads.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <dnnl.hpp>

using namespace dnnl;
using tag = memory::format_tag;

namespace {

// pass is one pass of a layer with its arguments.
struct pass {
	primitive run;
	std::unordered_map<int, memory> arguments;
};

const engine cpu(engine::kind::cpu, 0);

memory filled(const memory::desc &layout)
{
	memory m(layout, cpu);
	std::memset(m.get_data_handle(), 0, layout.get_size()); // zeros are as fast as other numbers and not denormal
	return m;
}

// passes returns the three passes of a convolution (or of a transposed one), forward first.
template <class forward, class data, class weights>
std::vector<pass> passes(memory::desc x, memory::desc k, memory::desc y, memory::dims stride, memory::dims pad, algorithm direct)
{
	typename forward::primitive_desc f({prop_kind::forward_training, direct, x, k, y, stride, pad, pad}, cpu);
	typename data::primitive_desc d({direct, x, k, y, stride, pad, pad}, cpu, f);
	typename weights::primitive_desc w({direct, x, k, y, stride, pad, pad}, cpu, f);
	return {
		{forward(f), {{DNNL_ARG_SRC, filled(f.src_desc())}, {DNNL_ARG_WEIGHTS, filled(f.weights_desc())}, {DNNL_ARG_DST, filled(f.dst_desc())}}},
		{data(d), {{DNNL_ARG_DIFF_DST, filled(d.diff_dst_desc())}, {DNNL_ARG_WEIGHTS, filled(d.weights_desc())}, {DNNL_ARG_DIFF_SRC, filled(d.diff_src_desc())}}},
		{weights(w), {{DNNL_ARG_SRC, filled(w.src_desc())}, {DNNL_ARG_DIFF_DST, filled(w.diff_dst_desc())}, {DNNL_ARG_DIFF_WEIGHTS, filled(w.diff_weights_desc())}}},
	};
}

memory::desc any(memory::dims dims, memory::data_type type) { return {dims, type, tag::any}; }

// halving is Conv 4/2/1, [B, in, n, n] to [B, out, n/2, n/2].
std::vector<pass> halving(long batch, long in, long out, long n, memory::data_type t)
{
	return passes<convolution_forward, convolution_backward_data, convolution_backward_weights>(any({batch, in, n, n}, t),
		any({out, in, 4, 4}, t), any({batch, out, n / 2, n / 2}, t), {2, 2}, {1, 1}, algorithm::convolution_direct);
}

// doubling is ConvTranspose 4/2/1, [B, in, n, n] to [B, out, 2n, 2n].
std::vector<pass> doubling(long batch, long in, long out, long n, memory::data_type t)
{
	return passes<deconvolution_forward, deconvolution_backward_data, deconvolution_backward_weights>(any({batch, in, n, n}, t),
		any({out, in, 4, 4}, t), any({batch, out, 2 * n, 2 * n}, t), {2, 2}, {1, 1}, algorithm::deconvolution_direct);
}

// last is Conv 3/1/1.
std::vector<pass> last(long batch, long in, long out, long n, memory::data_type t)
{
	return passes<convolution_forward, convolution_backward_data, convolution_backward_weights>(any({batch, in, n, n}, t),
		any({out, in, 3, 3}, t), any({batch, out, n, n}, t), {1, 1}, {1, 1}, algorithm::convolution_direct);
}

using layers = std::vector<std::vector<pass>>;

layers encoder(long batch, const std::vector<long> &widths, memory::data_type t)
{
	layers all;
	long in = 3, n = 64;
	for (long out : widths) {
		all.push_back(halving(batch, in, out, n, t));
		in = out, n /= 2;
	}
	all[0].erase(all[0].begin() + 1); // images need no gradient
	return all;
}

layers decoder(long batch, const std::vector<long> &widths, memory::data_type t)
{
	layers all;
	long in = widths[3], n = 4;
	for (int i = 3; i >= 0; i--) {
		all.push_back(doubling(batch, in, widths[i], n, t));
		in = widths[i], n *= 2;
	}
	all.push_back(last(batch, in, 3, n, t));
	return all;
}

// median returns the median time in seconds of one execution of all passes, repeated for the given seconds, at least three times.
double median(layers &all, size_t passes_of_each, double seconds)
{
	stream s(cpu);
	auto once = [&] {
		auto begin = std::chrono::steady_clock::now();
		for (auto &layer : all)
			for (size_t i = 0; i < std::min(passes_of_each, layer.size()); i++)
				layer[i].run.execute(s, layer[i].arguments);
		s.wait();
		return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
	};
	once();
	std::vector<double> times;
	for (double total = 0; total < seconds || times.size() < 3; total += times.back())
		times.push_back(once());
	std::sort(times.begin(), times.end());
	return times[times.size() / 2];
}

}

int main(int argc, char **argv)
{
	std::map<std::string, std::string> flags{{"--preset", "tiny"}, {"--batch", "64"}, {"--seconds", "5"}, {"--type", "float32"}};
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc || !flags.count(argv[i])) {
			std::fprintf(stderr, "%s: unknown flag or missing value; flags: --preset --batch --seconds --type\n", argv[i]);
			return 2;
		}
		flags[argv[i]] = argv[i + 1];
	}
	const std::map<std::string, std::vector<long>> presets{{"tiny", {8, 16, 32, 64}}, {"small", {16, 32, 64, 128}}, {"paper", {64, 128, 256, 512}}};
	const std::map<std::string, memory::data_type> types{{"float32", memory::data_type::f32}, {"bf16", memory::data_type::bf16}};
	long batch = std::atol(flags["--batch"].c_str());
	double seconds = std::atof(flags["--seconds"].c_str());
	if (!presets.count(flags["--preset"]) || !types.count(flags["--type"]) || batch < 1 || seconds <= 0) {
		std::fprintf(stderr, "--preset must be tiny, small or paper; --type float32 or bf16; --batch at least 1; --seconds above 0\n");
		return 2;
	}
	try {
		auto &widths = presets.at(flags["--preset"]);
		auto type = types.at(flags["--type"]);
		auto step = encoder(batch, widths, type), one = decoder(1, widths, type);
		for (auto &layer : decoder(batch, widths, type))
			step.push_back(layer);
		double train = median(step, 3, seconds), decode = median(one, 1, 1);
		std::printf("{\"images_per_second\": %.2f, \"step_ms\": %.3f, \"decode_ms\": %.4f}\n", batch / train, 1e3 * train, 1e3 * decode);
	} catch (const error &e) {
		std::fprintf(stderr, "oneDNN: %s\n", e.what());
		return 1;
	}
}
