#include "builder/bytecode/bytecode_step.hpp"

#include <utility>

#include "builder/plan.hpp"
#include "images/unpack.hpp"

namespace mlenv {

BytecodeStep::BytecodeStep(Tools tools)
    : tools_(std::move(tools)), segments_(tools_.lock.wheels.size()) {}

bool BytecodeStep::reads(std::size_t wheel) {
  segments_[wheel] =
      find_segment(tools_.store, bytecode_key(tools_.lock, tools_.lock.wheels[wheel]));
  return !segments_[wheel];
}

void BytecodeStep::start(Pool& work, TaskGroup& group, Done done) {
  work_ = &work;
  group_ = &group;
  done_ = std::move(done);
  const std::lock_guard lock{mutex_};
  own_layers_.resize(segments_.size());
  left_ = segments_.size();
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i]) segment_is_ready(i);
  }
}

int BytecodeStep::python_minor() const { return std::stoi(tools_.lock.python_minor().substr(2)); }

BytecodeCompiler::Setup BytecodeStep::setup(const Layer* own, unsigned workers) const {
  BytecodeCompiler::Setup setup;
  setup.base = tree_->path();
  setup.program = tools_.lock.python_program();
  setup.python_minor = python_minor();
  setup.workers = workers;
  if (own != nullptr) setup.opt = unpack_layer(tools_.store, *own, tools_.progress) / "opt";
  return setup;
}

void BytecodeStep::base_is_ready(const std::vector<Layer>& base, const Layer* own,
                                 unsigned workers) {
  tree_ = std::make_unique<BaseTree>(tools_.store, tools_.lock, base, tools_.progress);
  compiler_ = std::make_unique<BytecodeCompiler>(setup(own, workers));
  const std::lock_guard lock{mutex_};
  base_ready_ = true;
  for (const std::size_t wheel : early_) compile(wheel);
  early_.clear();
}

void BytecodeStep::wheel_is_ready(std::size_t wheel) {
  const std::lock_guard lock{mutex_};
  if (segments_[wheel]) return;
  if (base_ready_) {
    compile(wheel);
  } else {
    early_.push_back(wheel);
  }
}

void BytecodeStep::compile(std::size_t wheel) {
  group_->spawn(*work_, [this, wheel] {
    const SegmentJob job{tools_.wheel(wheel), bytecode_key(tools_.lock, tools_.lock.wheels[wheel]),
                         tools_.lock.epoch, python_minor()};
    make_segment(job, {tools_.store, *compiler_, *work_, *group_}, [this, wheel](Segment segment) {
      const std::lock_guard lock{mutex_};
      segments_[wheel] = std::move(segment);
      segment_is_ready(wheel);
    });
  });
}

void BytecodeStep::segment_is_ready(std::size_t wheel) {
  if (!has_own_layer(segments_[wheel].value())) return one_is_ready();
  group_->spawn(*work_, [this, wheel] { make_own_layer(wheel); });
}

void BytecodeStep::one_is_ready() {
  if (--left_ == 0) group_->spawn(*work_, [this] { make_layers(); });
}

void BytecodeStep::make_own_layer(std::size_t wheel) {
  const Segment segment = [&] {
    const std::lock_guard lock{mutex_};
    return segments_[wheel].value();
  }();
  const LockedWheel& locked = tools_.lock.wheels[wheel];
  const std::string title = "bytecode of " + locked.name + " " + locked.version;
  Layer layer =
      make_bytecode_layer({&segment}, title, tools_.lock.epoch, tools_.store, tools_.unpack);
  const std::lock_guard lock{mutex_};
  own_layers_[wheel] = std::move(layer);
  one_is_ready();
}

void BytecodeStep::make_layers() {
  const Activity activity{tools_.progress, "bytecode layer of small packages", 0, ""};
  std::vector<Layer> layers;
  std::vector<const Segment*> shared;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    if (own_layers_[i]) {
      layers.push_back(*std::move(own_layers_[i]));
    } else if (segments_[i].value().blob) {
      shared.push_back(&*segments_[i]);
    }
  }
  if (!shared.empty()) {
    layers.push_back(
        make_bytecode_layer(shared, "bytecode", tools_.lock.epoch, tools_.store, tools_.unpack));
  }
  done_(std::move(layers));
}

}  // namespace mlenv
