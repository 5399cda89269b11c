# exit: 2
mlenv lock recipe.yaml || true
mlenv build --platform arm64 good.yaml || true
mlenv build --platform linux/arm64 good.yaml || true
mlenv build --platform linux/riscv64 good.yaml
