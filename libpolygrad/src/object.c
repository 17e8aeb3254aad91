#define _GNU_SOURCE
#include "object.h"

#if defined(__linux__) && defined(__x86_64__)

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_SECTIONS = 64 };

/* A file whose header is right. Nothing in it is aligned. */
struct file {
  struct bytes code;
  uint32_t count;
  Elf64_Shdr sections[MOST_SECTIONS];
  uint64_t places[MOST_SECTIONS]; /* in memory */
};

static bool is_inside(struct bytes code, uint64_t start, uint64_t length) {
  return start <= code.length && length <= code.length - start;
}

static bool read_sections(struct file *f) {
  Elf64_Ehdr header;
  if (f->code.length < sizeof header)
    return false;
  memcpy(&header, f->code.data, sizeof header);
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_type != ET_REL || header.e_machine != EM_X86_64 || header.e_shentsize != sizeof *f->sections ||
      header.e_shnum > MOST_SECTIONS ||
      !is_inside(f->code, header.e_shoff, header.e_shnum * sizeof *f->sections))
    return false;
  f->count = header.e_shnum;
  memcpy(f->sections, f->code.data + header.e_shoff, f->count * sizeof *f->sections);
  for (uint32_t i = 0; i < f->count; i++) {
    const Elf64_Shdr *s = &f->sections[i];
    if (s->sh_type != SHT_NOBITS && !is_inside(f->code, s->sh_offset, s->sh_size))
      return false;
    if (s->sh_addralign > 4096 || s->sh_size > UINT32_MAX)
      return false;
  }
  return true;
}

/* Places for what is loaded, the code first; the size of the code in pages, and of all. */
static void place_sections(struct file *f, uint64_t *code_size, uint64_t *size) {
  uint64_t end = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
  for (unsigned round = 0; round < 2; round++) {
    for (uint32_t i = 0; i < f->count; i++) {
      const Elf64_Shdr *s = &f->sections[i];
      uint64_t align = s->sh_addralign ? s->sh_addralign : 1;
      if (!(s->sh_flags & SHF_ALLOC) || (s->sh_flags & SHF_EXECINSTR ? 0u : 1u) != round)
        continue;
      f->places[i] = end = (end + align - 1) / align * align;
      end += s->sh_size;
    }
    end = (end + page - 1) / page * page;
    *(round ? size : code_size) = end;
  }
}

/* The address of a symbol; 0 for one that is not there. `name`: of the text section `strings`. */
static uint64_t address_of(const struct file *f, const uint8_t *memory, const Elf64_Sym *symbol,
                           const int64_t *stop) {
  if (symbol->st_shndx && symbol->st_shndx < f->count && f->sections[symbol->st_shndx].sh_flags & SHF_ALLOC)
    return (uint64_t)(uintptr_t)memory + f->places[symbol->st_shndx] + symbol->st_value;
  return symbol->st_shndx == SHN_UNDEF ? (uint64_t)(uintptr_t)stop : 0;
}

/* Whether the name of a symbol is this one. */
static bool is_named(const struct file *f, uint32_t table, const Elf64_Sym *symbol, struct text name) {
  uint32_t link = f->sections[table].sh_link;
  if (link >= f->count || f->sections[link].sh_type == SHT_NOBITS)
    return false;
  const Elf64_Shdr *strings = &f->sections[link];
  if (symbol->st_name >= strings->sh_size || strings->sh_size - symbol->st_name <= name.length)
    return false;
  return !memcmp(f->code.data + strings->sh_offset + symbol->st_name, name.data, (size_t)name.length + 1);
}

static bool read_symbol(const struct file *f, uint32_t table, uint64_t number, Elf64_Sym *symbol) {
  if (table >= f->count || f->sections[table].sh_type != SHT_SYMTAB ||
      number >= f->sections[table].sh_size / sizeof *symbol)
    return false;
  memcpy(symbol, f->code.data + f->sections[table].sh_offset + number * sizeof *symbol, sizeof *symbol);
  return true;
}

/* Write the addresses that a section of relocations asks for. */
static bool relocate(const struct file *f, const Elf64_Shdr *s, uint8_t *memory, const int64_t *stop) {
  if (s->sh_info >= f->count || !(f->sections[s->sh_info].sh_flags & SHF_ALLOC))
    return true; /* of what is not loaded */
  for (uint64_t i = 0; i < s->sh_size / sizeof(Elf64_Rela); i++) {
    Elf64_Rela r;
    Elf64_Sym symbol;
    memcpy(&r, f->code.data + s->sh_offset + i * sizeof r, sizeof r);
    const Elf64_Shdr *target = &f->sections[s->sh_info];
    if (ELF64_R_TYPE(r.r_info) != R_X86_64_64 ||
        !read_symbol(f, s->sh_link, ELF64_R_SYM(r.r_info), &symbol) || r.r_offset > target->sh_size ||
        target->sh_size - r.r_offset < 8)
      return false;
    if (symbol.st_shndx == SHN_UNDEF && !is_named(f, s->sh_link, &symbol, (struct text){"polygrad_stop", 13}))
      return false;
    uint64_t address = address_of(f, memory, &symbol, stop);
    if (!address)
      return false;
    address += (uint64_t)r.r_addend;
    memcpy(memory + f->places[s->sh_info] + r.r_offset, &address, sizeof address);
  }
  return true;
}

static bool fill(const struct file *f, uint8_t *memory, const int64_t *stop) {
  for (uint32_t i = 0; i < f->count; i++)
    if (f->sections[i].sh_flags & SHF_ALLOC && f->sections[i].sh_type != SHT_NOBITS && f->sections[i].sh_size)
      memcpy(memory + f->places[i], f->code.data + f->sections[i].sh_offset, f->sections[i].sh_size);
  for (uint32_t i = 0; i < f->count; i++)
    if (f->sections[i].sh_type == SHT_RELA && !relocate(f, &f->sections[i], memory, stop))
      return false;
  return true;
}

static void *find_function(const struct file *f, uint8_t *memory, struct text name) {
  Elf64_Sym symbol;
  for (uint32_t table = 0; table < f->count; table++)
    for (uint64_t i = 0; read_symbol(f, table, i, &symbol); i++)
      if (symbol.st_shndx && symbol.st_shndx < f->count && is_named(f, table, &symbol, name) &&
          f->sections[symbol.st_shndx].sh_flags & SHF_EXECINSTR &&
          symbol.st_value < f->sections[symbol.st_shndx].sh_size)
        return memory + f->places[symbol.st_shndx] + symbol.st_value;
  return NULL;
}

/* Linux saves AMX's tile registers, which kernels may use, for processes that have asked. */
static void request_tiles(void) {
  const long request = 0x1023, tile_data = 18; /* ARCH_REQ_XCOMP_PERM of XFEATURE_XTILEDATA */
  syscall(SYS_arch_prctl, request, tile_data);
}

pg_status object_load(struct bytes code, struct text name, int64_t *stop, struct object *made,
                      pg_error *error) {
  struct file f = {.code = code};
  uint64_t code_size = 0, size = 0;
  if (!read_sections(&f))
    return fail(error, PG_COMPILE, "kernel %.100s: expected an object file for x86-64", name.data);
  place_sections(&f, &code_size, &size);
  void *memory = mmap(NULL, size + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return out_of_memory(error);
  request_tiles();
  *made = (struct object){memory, size + 1, find_function(&f, memory, name)};
  bool good = made->function && fill(&f, memory, stop) && !mprotect(memory, code_size, PROT_READ | PROT_EXEC);
  if (!good)
    object_unload(made);
  return good ? PG_OK : fail(error, PG_COMPILE, "kernel %.100s: its object file does not link", name.data);
}

void object_unload(struct object *object) {
  munmap(object->memory, object->nbytes);
}

#else

pg_status object_load(struct bytes code, struct text name, int64_t *stop, struct object *made,
                      pg_error *error) {
  (void)code, (void)stop, (void)made;
  return fail(error, PG_COMPILE, "kernel %.100s: object files are run on Linux and x86-64: export it on CC",
              name.data);
}

void object_unload(struct object *object) {
  (void)object;
}

#endif
