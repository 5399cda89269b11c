#include "runner/check/went_too_far.hpp"

#include <algorithm>
#include <array>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

struct Complaint {
  std::string_view words;
  std::string_view bound;
};

constexpr auto kComplaints = std::to_array<Complaint>({
    {"numpy.core.multiarray failed to import", "numpy<2"},
    {"numpy.core.umath failed to import", "numpy<2"},
    {"_ARRAY_API not found", "numpy<2"},
    {"Unable to convert function return value to a Python type", "numpy<2"},
    {"was removed in the NumPy 2.0 release", "numpy<2"},
    {"Expected 96 from C header, got 88 from PyObject", "numpy<2"},
    {"No module named 'numpy.lib.function_base'", "numpy<2"},
    {"module 'numpy' has no attribute 'float'", "numpy<1.24"},
    {"module 'numpy' has no attribute 'int'", "numpy<1.24"},
    {"module 'numpy' has no attribute 'bool'", "numpy<1.24"},
    {"module 'numpy' has no attribute 'object'", "numpy<1.24"},
    {"module 'numpy' has no attribute 'typeDict'", "numpy<1.24"},
    {"Descriptors cannot be created directly", "protobuf<3.21"},
    {"Descriptors cannot not be created directly", "protobuf<3.21"},
    {"'google.protobuf.internal' (", "protobuf>=3.20"},
    {"cannot import name 'escape' from 'jinja2'", "jinja2<3.1"},
    {"cannot import name 'Markup' from 'jinja2'", "jinja2<3.1"},
    {"cannot import name 'soft_unicode' from 'markupsafe'", "markupsafe<2.1"},
    {"cannot import name 'url_quote' from 'werkzeug.urls'", "werkzeug<3"},
    {"cannot import name 'BaseResponse' from 'werkzeug.wrappers'", "werkzeug<2.1"},
    {"cannot import name 'json' from 'itsdangerous'", "itsdangerous<2.1"},
    {"cannot import name 'cached_download' from 'huggingface_hub'", "huggingface-hub<0.26"},
    {"No module named 'torchvision.transforms.functional_tensor'", "torchvision<0.17"},
    {"No module named 'sklearn.externals.six'", "scikit-learn<0.23"},
    {"cannot import name 'joblib' from 'sklearn.externals'", "scikit-learn<0.23"},
    {"cannot import name 'imread' from 'scipy.misc'", "scipy<1.2"},
    {"cannot import name 'imresize' from 'scipy.misc'", "scipy<1.3"},
    {"cannot import name 'imsave' from 'scipy.misc'", "scipy<1.2"},
    {"cannot import name 'gaussian' from 'scipy.signal'", "scipy<1.13"},
    {"cannot import name 'trapz' from 'scipy.integrate'", "scipy<1.14"},
    {"cannot import name 'simps' from 'scipy.integrate'", "scipy<1.14"},
    {"module 'matplotlib' has no attribute '__version_info__'", "matplotlib-inline<0.2"},
    {"No module named 'moviepy.editor'", "moviepy<2"},
    {"No module named 'gensim.summarization'", "gensim<4"},
    {"No module named 'gensim.models.wrappers'", "gensim<4"},
    {"No module named 'pytorch_lightning.metrics'", "pytorch-lightning<1.5"},
    {"No module named 'torchtext.legacy'", "torchtext<0.12"},
    {"No module named 'torch._six'", "torch<2"},
    {"No module named 'pandas.util.testing'", "pandas<2"},
    {"cannot import name 'Int64Index' from 'pandas'", "pandas<2"},
    {"cannot import name 'from_numpy_matrix' from 'networkx'", "networkx<3"},
    {"cannot import name 'compare_ssim' from 'skimage.measure'", "scikit-image<0.18"},
    {"cannot import name 'compare_psnr' from 'skimage.measure'", "scikit-image<0.18"},
    {"`load_boston` has been removed from scikit-learn since version 1.2", "scikit-learn<1.2"},
    {"cannot import name 'plot_confusion_matrix' from 'sklearn.metrics'", "scikit-learn<1.2"},
    {"cannot import name 'plot_roc_curve' from 'sklearn.metrics'", "scikit-learn<1.2"},
    {"No module named 'sklearn.datasets.samples_generator'", "scikit-learn<0.24"},
    {"No module named 'sklearn.utils.linear_assignment_'", "scikit-learn<0.23"},
    {"cannot import name 'load_metric' from 'datasets'", "datasets<3"},
    {"cannot import name 'list_datasets' from 'datasets'", "datasets<3"},
    {"cannot import name 'inspect_metric' from 'datasets'", "datasets<3"},
    {"cannot import name 'rendering' from 'gym.envs.classic_control'", "gym<0.22"},
    {"cannot import name 'discrete' from 'gym.envs.toy_text'", "gym<0.22"},
    {"cannot import name 'JSONEncoder' from 'flask.json'", "flask<2.3"},
    {"cannot import name 'secure_filename' from 'werkzeug'", "werkzeug<1"},
    {"`BaseSettings` has been moved to the `pydantic-settings` package", "pydantic<2"},
    {"No module named 'keras.utils.np_utils'", "keras<2.13"},
    {"No module named 'flax.optim'", "flax<0.6"},
    {"No module named 'jax.linear_util'", "jax<0.4.24"},
    {"No module named 'spacy.gold'", "spacy<3"},
});

}  // namespace

std::string_view bound_of_complaint(std::string_view error) {
  const auto found = std::find_if(kComplaints.begin(), kComplaints.end(),
                                  [&](const Complaint& one) { return says(error, one.words); });
  return found == kComplaints.end() ? std::string_view{} : found->bound;
}

}  // namespace mlenv
