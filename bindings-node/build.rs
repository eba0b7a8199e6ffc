//! Lets the linker leave the napi symbols undefined: the Node process that loads the binary provides them.

fn main() {
    napi_build::setup();
}
