/** Tabs, as WAI-ARIA's authoring practices have them: arrow keys, Home and End move, one tab stop. */

/** The tab that an address names: `#editor`, or `#editor/…`, whose rest is the panel's own. */
const tabOf = (hash: string): string => hash.slice(1).split("/")[0] ?? "";

/** Make the tabs of `list` work. `opened` is called with the id of a panel when it is shown for the first time. */
export function startTabs(list: HTMLElement, opened: (id: string) => void): void {
  const tabs = Array.from(list.querySelectorAll<HTMLElement>('[role="tab"]'));
  const seen = new Set<string>();
  const select = (tab: HTMLElement, focus: boolean): void => {
    for (const other of tabs) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", String(chosen));
      other.tabIndex = chosen ? 0 : -1;
      const panel = document.getElementById(other.getAttribute("aria-controls") ?? "");
      if (panel) panel.hidden = !chosen;
    }
    if (focus) tab.focus();
    const id = tab.getAttribute("aria-controls") ?? "";
    if (tabOf(location.hash) !== id) history.replaceState(null, "", `#${id}`);
    if (!seen.has(id)) opened(id);
    seen.add(id);
  };
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => {
      select(tab, false);
    });
    tab.addEventListener("keydown", (event) => {
      const places: Record<string, number> = {
        ArrowRight: i + 1,
        ArrowLeft: i - 1 + tabs.length,
        Home: 0,
        End: tabs.length - 1,
      };
      const place = places[event.key];
      const next = place === undefined ? undefined : tabs[place % tabs.length];
      if (next === undefined) return;
      event.preventDefault();
      select(next, true);
    });
  });
  const linked = (): HTMLElement | undefined =>
    tabs.find((tab) => tab.getAttribute("aria-controls") === tabOf(location.hash));
  addEventListener("hashchange", () => {
    const tab = linked();
    if (tab !== undefined) select(tab, false);
  });
  const first = linked() ?? tabs[0];
  if (first !== undefined) select(first, false);
}
