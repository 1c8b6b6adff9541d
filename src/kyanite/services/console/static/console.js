"use strict";
// The console works without this script, but for uploads, the live pages and copying: those need it.

document.addEventListener("submit", (event) => {
  const asked = event.submitter && event.submitter.dataset.confirm;
  if (asked && !window.confirm(asked)) event.preventDefault();
});

// Where the menu scrolls sideways, the present page is in sight.
// Not by scrollIntoView, from which the next press of Tab would start.
const present = document.querySelector("header [aria-current]");
if (present) present.parentElement.scrollLeft = present.offsetLeft - present.parentElement.offsetLeft;

document.addEventListener("change", (event) => {
  if ("submit" in event.target.dataset) event.target.form.requestSubmit();
});

// "/" goes to the filter of the page.
document.addEventListener("keydown", (event) => {
  const isTyping = /^(input|textarea|select)$/i.test(event.target.tagName);
  const filter = document.querySelector("[data-filter]");
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && filter) {
    event.preventDefault();
    filter.focus();
    filter.select();
  }
});

document.addEventListener("click", (event) => {
  const text = event.target.closest("[data-copy]");
  if (text && navigator.clipboard && !String(window.getSelection())) {
    navigator.clipboard.writeText(text.textContent).then(() => { text.title = "Copied"; });
  }
});

// Uploads: one file after the other, each as the body of one request, with progress.
function send(form, file, done, total) {
  const bar = form.querySelector("progress");
  const address = new URL(form.dataset.upload, location.href);
  const isFile = address.pathname === "/file/upload";
  address.searchParams.set(isFile ? "path" : "name", form.dataset.prefix + file.name);
  if (form.querySelector("[name=overwrite]").checked) address.searchParams.set("overwrite", "1");
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", address);
    request.setRequestHeader("X-CSRF-Token", form.dataset.csrf);
    request.setRequestHeader("Accept", "application/json");
    request.setRequestHeader("Content-Type", file.type || "application/octet-stream");
    request.upload.onprogress = (event) => { bar.value = (done + event.loaded) / total; };
    request.onload = () => {
      if (request.status < 300) return resolve();
      let why = {};
      try { why = JSON.parse(request.responseText); } catch { /* An answer without a reason. */ }
      reject(new Error(`${file.name}: ${why.error || request.status} ${why.message || ""}`));
    };
    request.onerror = () => reject(new Error(`${file.name}: the connection was lost`));
    request.send(file);
  });
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.dataset.upload) return;
  event.preventDefault();
  const output = form.querySelector("output");
  const bar = form.querySelector("progress");
  const button = form.querySelector("button");
  const files = [...form.querySelector("input[type=file]").files];
  const total = files.reduce((sum, file) => sum + file.size, 0) || 1;
  let done = 0;
  bar.hidden = false;
  button.disabled = true;
  try {
    for (const file of files) {
      output.textContent = file.name;
      await send(form, file, done, total);
      done += file.size;
    }
    location.assign(form.dataset.back);
  } catch (error) {
    output.textContent = error.message;
    output.className = "problem";
    button.disabled = false;
    bar.hidden = true;
  }
});

// Live tables: asked for again while the page is visible, and replaced when they have changed.
let clockOffset = 0;

function left(milliseconds) {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1000));
  const minutes = Math.floor(seconds / 60);
  return minutes ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

function countDown() {
  for (const time of document.querySelectorAll("[data-ends]")) {
    const remaining = Number(time.dataset.ends) - (Date.now() + clockOffset);
    time.textContent = remaining > 0 ? left(remaining) : "ended";
  }
}

async function refresh(part, mark) {
  try {
    const response = await fetch(part.dataset.live, { headers: { Accept: "text/html" } });
    if (!response.ok || response.redirected) throw new Error(String(response.status));
    clockOffset = Date.parse(response.headers.get("Date")) - Date.now();
    const text = await response.text();
    if (text !== part.lastText && !part.contains(document.activeElement)) {
      // The server has escaped everything that is stored, and the policy of the page runs no inline script.
      part.innerHTML = text;
      part.lastText = text;
    }
    mark.classList.remove("off");
  } catch {
    mark.classList.add("off");
  }
  countDown();
}

const part = document.querySelector("[data-live]");
if (part) {
  const mark = document.querySelector("[data-live-mark]");
  const again = async () => {
    if (!document.hidden) await refresh(part, mark);
    window.setTimeout(again, 1500);
  };
  again();
  window.setInterval(countDown, 500);
}

// Requests as they are completed.
const rows = document.querySelector("[data-tail]");
if (rows) {
  const mark = document.querySelector("[data-tail-mark]");
  const note = document.querySelector("[data-tail-note]");
  const source = new EventSource(rows.dataset.tail);
  let leftOut = 0;
  source.onopen = () => mark.classList.remove("off");
  source.onerror = () => mark.classList.add("off");
  source.onmessage = (event) => {
    const news = JSON.parse(event.data);
    leftOut += news.left_out;
    if (leftOut) note.textContent = `${leftOut} more were too many to show.`;
    for (const line of news.lines) {
      const row = rows.insertRow(0);
      const status = line.error ? `${line.status} ${line.error}` : line.status;
      for (const text of [line.at, line.account, line.operation, line.path]) row.insertCell().textContent = text;
      const cell = row.insertCell();
      if (line.is_error) {
        const link = document.createElement("a");
        link.href = `/explain?id=${encodeURIComponent(line.id)}&account=${encodeURIComponent(line.account)}`;
        link.textContent = status;
        link.className = "status-bad";
        cell.append(link);
      } else {
        cell.textContent = status;
      }
      const duration = row.insertCell();
      duration.textContent = line.ms;
      duration.className = "number";
      row.insertCell().textContent = line.client;
    }
    while (rows.rows.length > 500) rows.deleteRow(-1);
  };
  window.addEventListener("pagehide", () => source.close());
}
