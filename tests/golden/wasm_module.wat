(module
  (type (;0;) (func (param i32)))
  (type (;1;) (func (param f32 i32)))
  (type (;2;) (func (param i32 i32) (result i32)))
  (import "env" "memory" (memory 1))
  (import "env" "log" (func (param i32)))
  (export "clamp" (func 1))
  (export "add" (func 2))
  (export "memory" (memory 0))
  (func (;1 clamp;) (param f32 i32)
    (local v128 v128 f64)
    block
      local.get 1
      i32.const 3
      i32.ge_u
      br_if 0
      loop
        local.get 1
        local.get 0
        f32.const nan
        f32.max
        f32.store offset=16 align=1
        local.get 1
        if (result i32)
          i32.const -1
        else
          i32.const 1
        end
        br_if 0
      end
    end)
  (func (;2 add;) (param i32 i32) (result i32)
    local.get 0
    local.get 1
    i32.add))
