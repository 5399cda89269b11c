ARG BASE_IMAGE=pytorch/pytorch:2.3.1-cuda12.1-cudnn8-runtime
ARG MODEL_SIZE=base_plus

FROM ${BASE_IMAGE}

ENV GUNICORN_WORKERS=1
ENV GUNICORN_PORT=5000

ENV APP_ROOT=/opt/seg
ENV PYTHONUNBUFFERED=1
ENV MODEL_SIZE=${MODEL_SIZE}

RUN apt-get update && apt-get install -y --no-install-recommends \
    ffmpeg \
    libavutil-dev \
    pkg-config

COPY setup.py .
COPY README.md .

RUN pip install --upgrade pip setuptools
RUN pip install -e ".[demo]"

# its own is broken
RUN rm /opt/conda/bin/ffmpeg && ln -s /bin/ffmpeg /opt/conda/bin/ffmpeg

RUN mkdir ${APP_ROOT}
COPY demo/server ${APP_ROOT}/server
COPY seg ${APP_ROOT}/server/seg

ADD https://host.example/models/tiny.pt ${APP_ROOT}/checkpoints/tiny.pt

WORKDIR ${APP_ROOT}/server

CMD gunicorn --worker-tmp-dir /dev/shm app:app \
    --workers ${GUNICORN_WORKERS} \
    --bind 0.0.0.0:${GUNICORN_PORT}
