# exit: 2
mlenv push jax-cpu
