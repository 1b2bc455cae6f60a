// Accepts files dropped anywhere on the form, and shows the elapsed time, because metrics of large tables take minutes.
const form = document.querySelector('.table-form');
const input = form?.querySelector('input[type="file"]');
const status = form?.querySelector('[data-part="status"]');

function drop(event) {
  event.preventDefault();
  form.classList.remove('over');
  if (event.dataTransfer.files.length > 0) input.files = event.dataTransfer.files;
}

if (form) {
  form.addEventListener('dragover', (event) => {
    event.preventDefault();
    form.classList.add('over');
  });
  form.addEventListener('dragleave', () => form.classList.remove('over'));
  form.addEventListener('drop', drop);
  form.addEventListener('submit', () => {
    const begun = Date.now();
    const tell = () => {
      status.textContent = `Measuring for ${Math.round((Date.now() - begun) / 1000)} s…`;
    };
    tell();
    setInterval(tell, 1000);
  });
}
