(module
  (type (;0;) (func (param i32 i32 i32 i32)))
  (import "env" "memory" (memory 1))
  (export "matmul" (func 0))
  (func (;0 matmul;) (param i32 i32 i32 i32)
    (local v128 v128 v128 v128 v128 v128 v128 v128 i32 i32 i32 v128 v128 i32 i32 i32 f32 v128 v128 v128 v128 v128 i32 i32 i32 f32 v128 v128 v128 v128 v128 i32 i32 i32 f32 v128 v128 v128 v128 v128 i32 i32 i32 f32 v128 v128 v128 v128 v128)
    v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
    local.set 4
    v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
    local.set 5
    v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
    local.set 6
    v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
    local.set 7
    v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
    local.set 8
    v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
    local.set 9
    v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
    local.set 10
    v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
    local.set 11
    local.get 3
    i32.const 0
    i32.mul
    local.set 17
    local.get 3
    i32.const 1
    i32.mul
    local.set 26
    local.get 3
    i32.const 2
    i32.mul
    local.set 35
    local.get 3
    i32.const 3
    i32.mul
    local.set 44
    block
      local.get 3
      i32.const 1
      i32.lt_s
      br_if 0
      i32.const 0
      local.set 12
      loop
        local.get 12
        i32.const 8
        i32.mul
        local.set 13
        local.get 2
        local.get 13
        i32.const 2
        i32.shl
        i32.add
        local.set 14
        local.get 14
        v128.load align=4
        local.set 15
        local.get 14
        v128.load offset=16 align=4
        local.set 16
        local.get 17
        local.get 12
        i32.add
        local.set 18
        local.get 1
        local.get 18
        i32.const 2
        i32.shl
        i32.add
        local.set 19
        local.get 19
        v128.load32_splat
        local.tee 21
        f32x4.extract_lane 0
        local.set 20
        local.get 4
        local.set 22
        local.get 21
        local.get 15
        local.get 22
        f32x4.relaxed_madd
        local.set 23
        local.get 23
        local.set 4
        local.get 5
        local.set 24
        local.get 21
        local.get 16
        local.get 24
        f32x4.relaxed_madd
        local.set 25
        local.get 25
        local.set 5
        local.get 26
        local.get 12
        i32.add
        local.set 27
        local.get 1
        local.get 27
        i32.const 2
        i32.shl
        i32.add
        local.set 28
        local.get 28
        v128.load32_splat
        local.tee 30
        f32x4.extract_lane 0
        local.set 29
        local.get 6
        local.set 31
        local.get 30
        local.get 15
        local.get 31
        f32x4.relaxed_madd
        local.set 32
        local.get 32
        local.set 6
        local.get 7
        local.set 33
        local.get 30
        local.get 16
        local.get 33
        f32x4.relaxed_madd
        local.set 34
        local.get 34
        local.set 7
        local.get 35
        local.get 12
        i32.add
        local.set 36
        local.get 1
        local.get 36
        i32.const 2
        i32.shl
        i32.add
        local.set 37
        local.get 37
        v128.load32_splat
        local.tee 39
        f32x4.extract_lane 0
        local.set 38
        local.get 8
        local.set 40
        local.get 39
        local.get 15
        local.get 40
        f32x4.relaxed_madd
        local.set 41
        local.get 41
        local.set 8
        local.get 9
        local.set 42
        local.get 39
        local.get 16
        local.get 42
        f32x4.relaxed_madd
        local.set 43
        local.get 43
        local.set 9
        local.get 44
        local.get 12
        i32.add
        local.set 45
        local.get 1
        local.get 45
        i32.const 2
        i32.shl
        i32.add
        local.set 46
        local.get 46
        v128.load32_splat
        local.tee 48
        f32x4.extract_lane 0
        local.set 47
        local.get 10
        local.set 49
        local.get 48
        local.get 15
        local.get 49
        f32x4.relaxed_madd
        local.set 50
        local.get 50
        local.set 10
        local.get 11
        local.set 51
        local.get 48
        local.get 16
        local.get 51
        f32x4.relaxed_madd
        local.set 52
        local.get 52
        local.set 11
        local.get 12
        i32.const 1
        i32.add
        local.tee 12
        local.get 3
        i32.lt_s
        br_if 0
      end
    end
    local.get 4
    local.set 52
    local.get 0
    local.get 52
    v128.store align=4
    local.get 5
    local.set 51
    local.get 0
    local.get 51
    v128.store offset=16 align=4
    local.get 6
    local.set 50
    local.get 0
    local.get 50
    v128.store offset=32 align=4
    local.get 7
    local.set 49
    local.get 0
    local.get 49
    v128.store offset=48 align=4
    local.get 8
    local.set 48
    local.get 0
    local.get 48
    v128.store offset=64 align=4
    local.get 9
    local.set 43
    local.get 0
    local.get 43
    v128.store offset=80 align=4
    local.get 10
    local.set 42
    local.get 0
    local.get 42
    v128.store offset=96 align=4
    local.get 11
    local.set 41
    local.get 0
    local.get 41
    v128.store offset=112 align=4))
